/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of libraries newer than Debian 12's: buffers, shared with librdmacm. */
#ifndef ROCED_NEWER_H
#define ROCED_NEWER_H

#include "abi.h"

struct ibv_buf;

#pragma GCC visibility push(default)
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
#pragma GCC visibility pop

#endif
