/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that a program and a roced card share: the layouts of queues and entries, and the
 * numbers in them, for libraries in C and other languages. Package ring defines the same in Go; a
 * test (header_test.go) compiles this file and compares each size and offset. The numbers are in numbers.h.
 *
 * A queue lies in shared memory, aligned to 128 bytes:
 *
 *	  0  words that the producer writes: its index at 0
 *	128  words that the consumer writes: its index at 128
 *	256  slots; their number is a power of two, their stride is fixed at creation
 *
 * Indices wrap at 2^32; an entry's slot is its index modulo the number of slots. Each side keeps
 * its own index in private memory and only copies it to the shared word, by a store with release
 * order after the entries are written. It loads the other side's index with acquire order, or
 * sequentially consistent where a rule below requires it, and bounds it before use: indices that
 * are further apart than the number of slots are invalid.
 *
 * Words are of the machine's byte order, entries little-endian.
 */
#ifndef ROCED_RING_H
#define ROCED_RING_H

#include <stdint.h>

#include "numbers.h"

enum {
	ROCED_PRODUCER_WORDS = 0,
	ROCED_CONSUMER_WORDS = 128,
	ROCED_SLOTS = 256,

	ROCED_MAX_ENTRIES = 1 << 20,
	ROCED_MAX_SGE = 16,
	ROCED_MAX_INLINE = 1024,
	ROCED_MAX_QUEUE_PAIRS = 1 << 16
};

/* A scatter/gather entry. Addresses of a region begin at its base, which is 0 unless it was registered with one. */
struct roced_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/*
 * A send work request. SGEs or the inline data (of which the card allows 512 bytes) follow; the stride is the sum
 * rounded up to 64. Connected services read the fixed part as roced_rdma_wqe; a roced_atomic, before its one SGE, or
 * a roced_bind follow. In a queue of an XRC initiator (ROCED_QPT_XRC_SEND) the fixed part is a roced_xrc_wqe, and all
 * else follows that.
 *
 * The consumer's word of a send queue is one of 64 bits at ROCED_CONSUMER_WORDS: the index in its low half, the number
 * of completions that the card has written in its high half. While the word at ROCED_SEND_ERROR is not 0 the queue
 * pair is in ERR: posts are flushed.
 */
struct roced_send_wqe {
	uint64_t id;
	uint8_t opcode; /* roced_wr_opcode */
	uint8_t flags;  /* roced_send_flags */
	uint16_t sge_count;
	uint32_t imm; /* in the host's order, as all in an entry: little-endian */
	uint32_t ah;
	uint32_t remote_qpn;
	uint32_t remote_qkey;
	uint32_t inline_length;
};

struct roced_rdma_wqe {
	uint64_t id;
	uint8_t opcode;
	uint8_t flags;
	uint16_t sge_count;
	uint32_t imm; /* or the rkey to invalidate */
	uint64_t remote_addr;
	uint32_t rkey; /* of a bind: the window's new one */
	uint32_t inline_length;
};

struct roced_xrc_wqe {
	struct roced_rdma_wqe rdma;
	uint32_t remote_srqn; /* of the peer's shared receive queue, 24 bits */
	uint32_t reserved[3];
};

struct roced_atomic {
	uint64_t compare_add;
	uint64_t swap;
};

struct roced_bind {
	uint64_t length;
	uint32_t lkey;
	uint32_t access; /* roced_access_flags */
};

enum { ROCED_SEND_ERROR = ROCED_CONSUMER_WORDS + 8 };

/*
 * A receive work request. SGEs follow; the stride is the sum rounded up to 32. While the word at
 * ROCED_RECV_FLUSH is not 0 the queue pair is in ERR, and a post must ring the doorbell.
 *
 * In a shared receive queue a slot is free when the consumer's index has passed it; in a queue
 * pair's own, when the completion has been polled. Posts to a shared queue ring no doorbell. After a
 * resize the program posts to the new queue; the card first consumes the requests in the old one.
 */
struct roced_recv_wqe {
	uint64_t id;
	uint32_t sge_count;
	uint32_t reserved;
};

enum { ROCED_RECV_FLUSH = ROCED_CONSUMER_WORDS + 4 };

/*
 * A completion; the stride is its size. Before it sleeps the program sets bits of the word at
 * ROCED_CQ_ARMED (by an atomic or), and then loads the card's index once more, both sequentially
 * consistent. The card clears the bits whose event it sends. ROCED_CQ_ARMED_WAIT has a separate event;
 * ROCED_CQ_ARMED_NEXT, _SOLICITED and _COUNT share one, which ends all three. ROCED_CQ_ARMED_COUNT waits
 * until the number of unread completions reaches the word at ROCED_CQ_THRESHOLD. ROCED_CQ_ARMED_FUTEX is
 * also separate: the card wakes the word of its index, at ROCED_PRODUCER_WORDS, as a futex shared between
 * processes (futex(2), FUTEX_WAKE), without a message. It also does so when it switches to another queue
 * (resize_cq). The card sets the word at ROCED_CQ_ERROR after an overrun, when it has published the last
 * completions. A program that finds it set polls once more.
 */
struct roced_cqe {
	uint64_t id;
	uint8_t status; /* roced_wc_status */
	uint8_t opcode; /* roced_wc_opcode */
	uint16_t flags; /* roced_wc_flags */
	uint32_t byte_length;
	uint32_t imm;
	uint32_t qpn;
	uint32_t source_qp;
	uint32_t token; /* the queue pair's completion token, which each reset renews; of XRC the SRQ's */
	uint32_t vendor_error;
	uint16_t pkey_index;
	uint8_t source_mac[6];
	uint16_t vlan;
	uint8_t network_header; /* roced_network_type */
	uint8_t service_level;
	uint8_t port;
	uint8_t reserved[15];
};

/* A completion in a queue with timestamps; the stride is its size. */
struct roced_stamped_cqe {
	struct roced_cqe cqe;
	uint64_t timestamp; /* ns of the card's free-running clock */
	uint64_t wallclock; /* ns since 1970, UTC */
	uint8_t reserved[48];
};

enum {
	ROCED_CQ_ERROR = ROCED_PRODUCER_WORDS + 4,
	ROCED_CQ_ARMED = ROCED_CONSUMER_WORDS + 4,
	ROCED_CQ_THRESHOLD = ROCED_CONSUMER_WORDS + 8,

	ROCED_CQ_ARMED_NEXT = 1 << 0,
	ROCED_CQ_ARMED_SOLICITED = 1 << 1,
	ROCED_CQ_ARMED_COUNT = 1 << 2,
	ROCED_CQ_ARMED_WAIT = 1 << 3,
	ROCED_CQ_ARMED_FUTEX = 1 << 4
};

/*
 * The doorbell of a program: a bit for each queue pair (by its doorbell index, not its number), and
 * a summary bit for each word of bits. The program publishes a queue's index, sets the bit, then
 * the summary bit (both sequentially consistent), and calls the card if asleep is not 0. When the session ends
 * the card sets ended, and wakes it as a futex. A card that is killed does not, and then its sockets have ended.
 */
struct roced_doorbell {
	uint32_t asleep;
	uint32_t ended;
	uint8_t reserved[120];
	uint64_t summary[ROCED_MAX_QUEUE_PAIRS / 64 / 64];
	uint64_t bits[ROCED_MAX_QUEUE_PAIRS / 64];
};

#endif
