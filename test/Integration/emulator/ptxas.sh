#!/bin/sh
# Stands for ptxas: the machine code is an ELF header with the PTX text behind it. A shell starts faster than Python.
#   ptxas.sh -v -arch=sm_90a kernels.ptx -o kernels.cubin
while [ $# -gt 0 ]; do
  case $1 in
  -o)
    output=$2
    shift
    ;;
  -*) ;;
  *) source=$1 ;;
  esac
  shift
done
# 64 bits, little endian; an executable for machine 190 (CUDA), in 64 bytes.
{
  printf '\177ELF\002\001\001' && head -c 9 /dev/zero
  printf '\002\000\276\000' && head -c 44 /dev/zero
  cat "$source" && printf '\000'
} >"$output"
