// Every dialect that a level may hold is known to gdn-opt by name.
// RUN: gdn-opt --show-dialects | FileCheck %s
// CHECK: Available Dialects: affine,arith,bufferization,builtin,cf,func,gdn,gdn_tile,index,linalg,llvm,math,memref,omp,scf,tensor,transform,ub,vector
