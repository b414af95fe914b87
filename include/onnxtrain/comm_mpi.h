// SPDX-License-Identifier: Apache-2.0
// Messages by MPI, for programs that have a communicator of their own: compile mpi/comm_mpi.c with
// mpicc, or link libonnxtrain_mpi.so. ot_comm_open() loads that library by itself.
#ifndef ONNXTRAIN_COMM_MPI_H
#define ONNXTRAIN_COMM_MPI_H

#include "onnxtrain/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective: a transport for ot_comm_create(). MPI is initialised if it is not yet, with
 * MPI_THREAD_FUNNELED, and is then finalised when the process ends, provided that all of its
 * transports were destroyed; else the launcher sees that this process has failed.
 *
 * @param abi OT_TRANSPORT_ABI
 * @param communicator points to an MPI_Comm, which is duplicated; NULL: MPI_COMM_WORLD
 * @param message receives what went wrong, of at most n_message bytes
 */
ot_status ot_transport_mpi(int abi, const void *communicator, ot_transport *transport,
                           char *message, size_t n_message);
typedef ot_status (*ot_transport_mpi_function)(int abi, const void *communicator,
                                               ot_transport *transport, char *message,
                                               size_t n_message);

/**
 * The same for a communicator that is known by the number that MPI_Comm_c2f() gives for it.
 *
 * @param library what MPI_Get_library_version() says where the number is from; NULL: not compared
 */
ot_status ot_transport_mpi_number(int abi, int communicator, const char *library,
                                  ot_transport *transport, char *message, size_t n_message);
typedef ot_status (*ot_transport_mpi_number_function)(int abi, int communicator,
                                                      const char *library, ot_transport *transport,
                                                      char *message, size_t n_message);

#ifdef __cplusplus
}
#endif
#endif
