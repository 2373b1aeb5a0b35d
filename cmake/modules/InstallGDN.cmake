# The package for embedding: libraries, headers, .td and .inc files, and GDNConfig.cmake for the
# build tree and for the install tree. find_package(GDN) works on both.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY GDN_LIBRARIES)
get_property(tools GLOBAL PROPERTY GDN_TOOLS)
install(TARGETS ${libraries} EXPORT GDNTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS ${tools}
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
foreach(tree "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  install(DIRECTORY "${tree}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
endforeach()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gdn")
set(build_package_dir "${PROJECT_BINARY_DIR}/${package_dir}")
install(EXPORT GDNTargets DESTINATION "${package_dir}")
export(EXPORT GDNTargets FILE "${build_package_dir}/GDNTargets.cmake")

write_basic_package_version_file("${build_package_dir}/GDNConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
# Two files from one template: they differ in where the headers are.
set(GDN_CONFIG_INCLUDE_DIRS "${PROJECT_SOURCE_DIR}/include;${PROJECT_BINARY_DIR}/include")
configure_package_config_file(cmake/GDNConfig.cmake.in "${build_package_dir}/GDNConfig.cmake"
  INSTALL_DESTINATION "${build_package_dir}" INSTALL_PREFIX "${PROJECT_BINARY_DIR}")
set(GDN_CONFIG_INCLUDE_DIRS "\${PACKAGE_PREFIX_DIR}/${CMAKE_INSTALL_INCLUDEDIR}")
configure_package_config_file(cmake/GDNConfig.cmake.in
  "${PROJECT_BINARY_DIR}/CMakeFiles/GDNConfig.cmake" INSTALL_DESTINATION "${package_dir}")
install(FILES "${PROJECT_BINARY_DIR}/CMakeFiles/GDNConfig.cmake"
  "${build_package_dir}/GDNConfigVersion.cmake" DESTINATION "${package_dir}")
