// Every dialect that a level may hold is known to gdn-opt by name.
// RUN: gdn-opt --show-dialects | FileCheck %s
// CHECK: Available Dialects: affine,amx,arith,bufferization,builtin,cf,func,gdn,gdn_tile,gdn_warp,index,linalg,llvm,math,memref,nvvm,omp,scf,tensor,transform,ub,vector,x86vector
