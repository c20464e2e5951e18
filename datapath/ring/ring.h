/*
 * The memory that a program and a roced card share: the layouts of queues and entries, and the
 * numbers in them, for libraries in C and other languages. Package ring defines the same in Go; a
 * test (header_test.go) compiles this file and compares each size, offset and number.
 *
 * A queue lies in shared memory, aligned to 128 bytes:
 *
 *	  0  words that the producer writes: its index at 0
 *	128  words that the consumer writes: its index at 128
 *	256  slots; their number is a power of two, their stride is fixed at creation
 *
 * Indices wrap at 2^32; an entry's slot is its index modulo the number of slots. Each side keeps
 * its own index in private memory and only copies it to the shared word, by a store with release
 * order after the entries are written. It loads the other side's index with acquire order and
 * bounds it before use: indices that are further apart than the number of slots are invalid.
 *
 * Words are of the machine's byte order, entries little-endian.
 */
#ifndef ROCED_RING_H
#define ROCED_RING_H

#include <stdint.h>

enum {
	ROCED_PRODUCER_WORDS = 0,
	ROCED_CONSUMER_WORDS = 128,
	ROCED_SLOTS = 256,

	ROCED_MAX_ENTRIES = 1 << 20,
	ROCED_MAX_SGE = 16,
	ROCED_MAX_INLINE = 1024,
	ROCED_MAX_QUEUE_PAIRS = 1 << 16
};

/* A scatter/gather entry. The address is an offset from the start of the region. */
struct roced_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/*
 * A send work request. SGEs or the inline data follow; the stride is the sum rounded up to 64. Connected
 * services read the fixed part as roced_rdma_wqe; a roced_atomic, before its one SGE, or a roced_bind follow.
 * The consumer's word of a send queue is one of 64 bits at ROCED_CONSUMER_WORDS: the index in
 * its low half, the number of completions that the card has written in its high half. While the
 * word at ROCED_SEND_ERROR is not 0 the queue pair is in ERR: posts are flushed.
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
 * pair's own, when the completion has been polled. Posts to a shared queue ring no doorbell. When it
 * is resized the program posts to the new queue; the card takes what is in the old one first.
 */
struct roced_recv_wqe {
	uint64_t id;
	uint32_t sge_count;
	uint32_t reserved;
};

enum { ROCED_RECV_FLUSH = ROCED_CONSUMER_WORDS + 4 };

/*
 * A completion; the stride is its size. Before it sleeps the program sets bits of the word at
 * ROCED_CQ_ARMED (by an atomic or), and then looks for completions once more. The card clears the bits
 * of which it sends the event. ROCED_CQ_ARMED_WAIT has an event of its own; the other three share one,
 * which ends all three. ROCED_CQ_ARMED_COUNT waits until as many completions are unread as the word at
 * ROCED_CQ_THRESHOLD says. The card sets the word at ROCED_CQ_ERROR when the queue was overrun.
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
	uint32_t token; /* the queue pair's completion token; each reset gives it a new one */
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
	ROCED_CQ_ARMED_WAIT = 1 << 3
};

/*
 * The doorbell of a program: a bit for each queue pair (by its doorbell index, not its number), and
 * a summary bit for each word of bits. The program publishes a queue's index, sets the bit, then
 * the summary bit (both sequentially consistent), and calls the card if asleep is not 0.
 */
struct roced_doorbell {
	uint32_t asleep;
	uint8_t reserved[124];
	uint64_t summary[ROCED_MAX_QUEUE_PAIRS / 64 / 64];
	uint64_t bits[ROCED_MAX_QUEUE_PAIRS / 64];
};

/* The numbers of libibverbs; where it has none, those of the kernel's ib_verbs.h. */

enum roced_wr_opcode {
	ROCED_WR_RDMA_WRITE = 0,
	ROCED_WR_RDMA_WRITE_WITH_IMM = 1,
	ROCED_WR_SEND = 2,
	ROCED_WR_SEND_WITH_IMM = 3,
	ROCED_WR_RDMA_READ = 4,
	ROCED_WR_ATOMIC_CMP_AND_SWP = 5,
	ROCED_WR_ATOMIC_FETCH_AND_ADD = 6,
	ROCED_WR_LOCAL_INV = 7,
	ROCED_WR_BIND_MW = 8,
	ROCED_WR_SEND_WITH_INV = 9
};

enum roced_send_flags {
	ROCED_SEND_FENCE = 1 << 0,
	ROCED_SEND_SIGNALED = 1 << 1,
	ROCED_SEND_SOLICITED = 1 << 2,
	ROCED_SEND_INLINE = 1 << 3
};

enum roced_wc_status {
	ROCED_WC_SUCCESS = 0,
	ROCED_WC_LOC_LEN_ERR = 1,
	ROCED_WC_LOC_QP_OP_ERR = 2,
	ROCED_WC_LOC_EEC_OP_ERR = 3,
	ROCED_WC_LOC_PROT_ERR = 4,
	ROCED_WC_WR_FLUSH_ERR = 5,
	ROCED_WC_MW_BIND_ERR = 6,
	ROCED_WC_BAD_RESP_ERR = 7,
	ROCED_WC_LOC_ACCESS_ERR = 8,
	ROCED_WC_REM_INV_REQ_ERR = 9,
	ROCED_WC_REM_ACCESS_ERR = 10,
	ROCED_WC_REM_OP_ERR = 11,
	ROCED_WC_RETRY_EXC_ERR = 12,
	ROCED_WC_RNR_RETRY_EXC_ERR = 13,
	ROCED_WC_LOC_RDD_VIOL_ERR = 14,
	ROCED_WC_REM_INV_RD_REQ_ERR = 15,
	ROCED_WC_REM_ABORT_ERR = 16,
	ROCED_WC_INV_EECN_ERR = 17,
	ROCED_WC_INV_EEC_STATE_ERR = 18,
	ROCED_WC_FATAL_ERR = 19,
	ROCED_WC_RESP_TIMEOUT_ERR = 20,
	ROCED_WC_GENERAL_ERR = 21
};

enum roced_wc_opcode {
	ROCED_WC_SEND = 0,
	ROCED_WC_RDMA_WRITE = 1,
	ROCED_WC_RDMA_READ = 2,
	ROCED_WC_COMP_SWAP = 3,
	ROCED_WC_FETCH_ADD = 4,
	ROCED_WC_BIND_MW = 5,
	ROCED_WC_LOCAL_INV = 6,
	ROCED_WC_RECV = 1 << 7, /* set in all completions of receive requests */
	ROCED_WC_RECV_RDMA_WITH_IMM = (1 << 7) + 1
};

enum roced_wc_flags {
	ROCED_WC_GRH = 1 << 0,
	ROCED_WC_WITH_IMM = 1 << 1,
	ROCED_WC_WITH_INV = 1 << 3,
	ROCED_WC_WITH_SMAC = 1 << 4,
	ROCED_WC_WITH_VLAN = 1 << 5,
	ROCED_WC_WITH_NETWORK_HDR_TYPE = 1 << 6
};

enum roced_network_type {
	ROCED_NETWORK_IPV4 = 2,
	ROCED_NETWORK_IPV6 = 3
};

enum roced_qp_type {
	ROCED_QPT_SMI = 0,
	ROCED_QPT_GSI = 1,
	ROCED_QPT_RC = 2,
	ROCED_QPT_UC = 3,
	ROCED_QPT_UD = 4,
	ROCED_QPT_RAW_PACKET = 8,
	ROCED_QPT_XRC_SEND = 9,
	ROCED_QPT_XRC_RECV = 10
};

enum roced_link_layer {
	ROCED_LINK_LAYER_UNSPECIFIED = 0,
	ROCED_LINK_LAYER_INFINIBAND = 1,
	ROCED_LINK_LAYER_ETHERNET = 2
};

enum roced_qp_state {
	ROCED_QPS_RESET = 0,
	ROCED_QPS_INIT = 1,
	ROCED_QPS_RTR = 2,
	ROCED_QPS_RTS = 3,
	ROCED_QPS_SQD = 4,
	ROCED_QPS_SQE = 5,
	ROCED_QPS_ERR = 6
};

enum roced_qp_attr_mask {
	ROCED_QP_STATE = 1 << 0,
	ROCED_QP_CUR_STATE = 1 << 1,
	ROCED_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	ROCED_QP_ACCESS_FLAGS = 1 << 3,
	ROCED_QP_PKEY_INDEX = 1 << 4,
	ROCED_QP_PORT = 1 << 5,
	ROCED_QP_QKEY = 1 << 6,
	ROCED_QP_AV = 1 << 7,
	ROCED_QP_PATH_MTU = 1 << 8,
	ROCED_QP_TIMEOUT = 1 << 9,
	ROCED_QP_RETRY_CNT = 1 << 10,
	ROCED_QP_RNR_RETRY = 1 << 11,
	ROCED_QP_RQ_PSN = 1 << 12,
	ROCED_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	ROCED_QP_ALT_PATH = 1 << 14,
	ROCED_QP_MIN_RNR_TIMER = 1 << 15,
	ROCED_QP_SQ_PSN = 1 << 16,
	ROCED_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	ROCED_QP_PATH_MIG_STATE = 1 << 18,
	ROCED_QP_CAP = 1 << 19,
	ROCED_QP_DEST_QPN = 1 << 20,
	ROCED_QP_RATE_LIMIT = 1 << 25
};

enum roced_path_mig_state {
	ROCED_MIG_MIGRATED = 0,
	ROCED_MIG_REARM = 1,
	ROCED_MIG_ARMED = 2
};

enum roced_srq_attr_mask {
	ROCED_SRQ_MAX_WR = 1 << 0,
	ROCED_SRQ_LIMIT = 1 << 1
};

enum roced_access_flags {
	ROCED_ACCESS_LOCAL_WRITE = 1 << 0,
	ROCED_ACCESS_REMOTE_WRITE = 1 << 1,
	ROCED_ACCESS_REMOTE_READ = 1 << 2,
	ROCED_ACCESS_REMOTE_ATOMIC = 1 << 3,
	ROCED_ACCESS_MW_BIND = 1 << 4,
	ROCED_ACCESS_ZERO_BASED = 1 << 5,
	ROCED_ACCESS_ON_DEMAND = 1 << 6,
	ROCED_ACCESS_HUGETLB = 1 << 7,
	ROCED_ACCESS_FLUSH_GLOBAL = 1 << 8,
	ROCED_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	ROCED_ACCESS_RELAXED_ORDERING = 1 << 20,
	ROCED_ACCESS_OPTIONAL_RANGE = 0x3FF << 20
};

enum roced_mw_type {
	ROCED_MW_TYPE_1 = 1,
	ROCED_MW_TYPE_2 = 2
};

enum roced_rereg_mr_flags {
	ROCED_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
	ROCED_REREG_MR_CHANGE_PD = 1 << 1,
	ROCED_REREG_MR_CHANGE_ACCESS = 1 << 2
};

enum roced_event_type {
	ROCED_EVENT_CQ_ERR = 0,
	ROCED_EVENT_QP_FATAL = 1,
	ROCED_EVENT_QP_REQ_ERR = 2,
	ROCED_EVENT_QP_ACCESS_ERR = 3,
	ROCED_EVENT_COMM_EST = 4,
	ROCED_EVENT_SQ_DRAINED = 5,
	ROCED_EVENT_PATH_MIG = 6,
	ROCED_EVENT_PATH_MIG_ERR = 7,
	ROCED_EVENT_DEVICE_FATAL = 8,
	ROCED_EVENT_PORT_ACTIVE = 9,
	ROCED_EVENT_PORT_ERR = 10,
	ROCED_EVENT_SRQ_ERR = 14,
	ROCED_EVENT_SRQ_LIMIT_REACHED = 15,
	ROCED_EVENT_QP_LAST_WQE_REACHED = 16,
	ROCED_EVENT_GID_CHANGE = 18,
	ROCED_EVENT_MTU_CHANGE = 128 /* not in libibverbs */
};

enum roced_port_state {
	ROCED_PORT_DOWN = 1,
	ROCED_PORT_ACTIVE = 4
};

enum roced_port_phys_state {
	ROCED_PHYS_STATE_POLLING = 2,
	ROCED_PHYS_STATE_DISABLED = 3,
	ROCED_PHYS_STATE_LINK_UP = 5
};

enum roced_port_cap_flags {
	ROCED_PORT_CAP_IP_BASED_GIDS = 1 << 26
};

enum roced_device_cap_flags {
	ROCED_DEVICE_BAD_PKEY_CNTR = 1 << 1,
	ROCED_DEVICE_BAD_QKEY_CNTR = 1 << 2,
	ROCED_DEVICE_CURR_QP_STATE_MOD = 1 << 7,
	ROCED_DEVICE_PORT_ACTIVE_EVENT = 1 << 10,
	ROCED_DEVICE_SYS_IMAGE_GUID = 1 << 11,
	ROCED_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
	ROCED_DEVICE_SRQ_RESIZE = 1 << 13,
	ROCED_DEVICE_N_NOTIFY_CQ = 1 << 14,
	ROCED_DEVICE_MEM_WINDOW = 1 << 17,
	ROCED_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24
};

enum roced_atomic_cap {
	ROCED_ATOMIC_NONE = 0,
	ROCED_ATOMIC_HCA = 1,
	ROCED_ATOMIC_GLOB = 2
};

enum roced_gid_type {
	ROCED_GID_TYPE_IB = 0,
	ROCED_GID_TYPE_ROCE_V1 = 1,
	ROCED_GID_TYPE_ROCE_V2 = 2
};

enum roced_rate {
	ROCED_RATE_PORT_CURRENT = 0, /* IBV_RATE_MAX */
	ROCED_RATE_2_5_GBPS = 2,
	ROCED_RATE_5_GBPS = 5,
	ROCED_RATE_10_GBPS = 3,
	ROCED_RATE_20_GBPS = 6,
	ROCED_RATE_30_GBPS = 4,
	ROCED_RATE_40_GBPS = 7,
	ROCED_RATE_60_GBPS = 8,
	ROCED_RATE_80_GBPS = 9,
	ROCED_RATE_120_GBPS = 10,
	ROCED_RATE_14_GBPS = 11,
	ROCED_RATE_56_GBPS = 12,
	ROCED_RATE_112_GBPS = 13,
	ROCED_RATE_168_GBPS = 14,
	ROCED_RATE_25_GBPS = 15,
	ROCED_RATE_100_GBPS = 16,
	ROCED_RATE_200_GBPS = 17,
	ROCED_RATE_300_GBPS = 18,
	ROCED_RATE_28_GBPS = 19,
	ROCED_RATE_50_GBPS = 20,
	ROCED_RATE_400_GBPS = 21,
	ROCED_RATE_600_GBPS = 22,
	ROCED_RATE_800_GBPS = 23,
	ROCED_RATE_1200_GBPS = 24,
	ROCED_RATE_1600_GBPS = 25
};

enum roced_join_flags {
	ROCED_JOIN_FULL_MEMBER = 1 << 0,
	ROCED_JOIN_SEND_ONLY_FULL_MEMBER = 1 << 1
};

enum roced_cm_event_type {
	ROCED_CM_EVENT_ADDR_RESOLVED = 0,
	ROCED_CM_EVENT_ADDR_ERROR = 1,
	ROCED_CM_EVENT_ROUTE_RESOLVED = 2,
	ROCED_CM_EVENT_ROUTE_ERROR = 3,
	ROCED_CM_EVENT_CONNECT_REQUEST = 4,
	ROCED_CM_EVENT_CONNECT_RESPONSE = 5,
	ROCED_CM_EVENT_CONNECT_ERROR = 6,
	ROCED_CM_EVENT_UNREACHABLE = 7,
	ROCED_CM_EVENT_REJECTED = 8,
	ROCED_CM_EVENT_ESTABLISHED = 9,
	ROCED_CM_EVENT_DISCONNECTED = 10,
	ROCED_CM_EVENT_DEVICE_REMOVAL = 11,
	ROCED_CM_EVENT_MULTICAST_JOIN = 12,
	ROCED_CM_EVENT_MULTICAST_ERROR = 13,
	ROCED_CM_EVENT_ADDR_CHANGE = 14,
	ROCED_CM_EVENT_TIMEWAIT_EXIT = 15
};

enum roced_id_option {
	ROCED_ID_OPTION_TOS = 0,
	ROCED_ID_OPTION_REUSE_ADDR = 1,
	ROCED_ID_OPTION_AFONLY = 2
};

#endif
