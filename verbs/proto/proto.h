/* SPDX-License-Identifier: Apache-2.0 */
/* What client and service of roced say to each other. See the documentation of
 * package verbs/proto (doc.go), and ring.h for the queues and all numbers.
 *
 * Written by the tests of verbs/proto from its Go side: go test ./verbs/proto -update
 *
 * A packet is a struct roced_message and the structure of its kind: a command's request or grant
 * (none if it has no fields), or one of those below. All is little-endian, aligned by its size. A list
 * has as many entries as its count says.
 *
 * What has to be 0, else the packet is malformed: reserved bytes; what is behind
 * the end of a text (char), of which the last byte is 0; of an address whose family is 0 (none) its bytes
 * and zone, and of one of IPv4 (4; IPv6 is 6) its last 12 bytes and zone; the port of the addresses of
 * find_route and of groups, which have none. Fields that say yes or no are 0 or 1. Other fields that mean
 * nothing for what is asked for may be 0.
 *
 * A struct roced_place names a part of the session's shared memory.
 */
#ifndef ROCED_PROTO_H
#define ROCED_PROTO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	ROCED_PROTO_MAGIC = 0x64636f72,
	ROCED_PROTO_OLDEST_VERSION = 3,
	ROCED_PROTO_VERSION = 3,
	ROCED_PROTO_MAX_MESSAGE = 16384,
};

enum roced_message_kind {
	ROCED_REQUEST = 1,
	ROCED_CANCEL = 2,
	ROCED_REPLY = 3,
	ROCED_FAILURE = 4,
	ROCED_ENDED = 5,
};

enum roced_cancel_reason {
	ROCED_CANCELED = 1,
	ROCED_DEADLINE_EXCEEDED = 2,
};

/* Bits of roced_failure.kinds; package verbs describes the errors. */
enum roced_error {
	ROCED_ERR_INVALID = 1 << 0,
	ROCED_ERR_STATE = 1 << 1,
	ROCED_ERR_QUEUE_FULL = 1 << 2,
	ROCED_ERR_LIMIT = 1 << 3,
	ROCED_ERR_BUSY = 1 << 4,
	ROCED_ERR_PERMISSION = 1 << 5,
	ROCED_ERR_UNSUPPORTED = 1 << 6,
	ROCED_ERR_UNREACHABLE = 1 << 7,
	ROCED_ERR_NO_GID = 1 << 8,
	ROCED_ERR_CQ_OVERRUN = 1 << 9,
	ROCED_ERR_DEVICE_FATAL = 1 << 10,
	ROCED_ERR_CLOSED = 1 << 11,
	ROCED_ERR_OBJECT_CLOSED = 1 << 12,
	ROCED_ERR_HOST = 1 << 13,
	ROCED_ERR_ADDR_NOT_AVAIL = 1 << 14,
	ROCED_ERR_ADDR_IN_USE = 1 << 15,
	ROCED_ERR_NOT_FOUND = 1 << 16,
};

/* Of list_objects. Attachments are of queue pairs to groups. */
enum roced_object_kind {
	ROCED_PDS = 1,
	ROCED_CQS = 2,
	ROCED_QPS = 3,
	ROCED_SRQS = 4,
	ROCED_MRS = 5,
	ROCED_AHS = 6,
	ROCED_ATTACHMENTS = 7,
	ROCED_MEMBERSHIPS = 8,
};

enum roced_command {
	ROCED_HELLO = 1,
	ROCED_OPEN_DEVICE = 2,
	ROCED_CLOSE = 3,
	ROCED_LIST_CLIENTS = 4,
	ROCED_LIST_OBJECTS = 5,
	ROCED_READ_COUNTERS = 6,
	ROCED_NEXT_EVENTS = 7,
	ROCED_START_CAPTURE = 8,
	ROCED_LOOK_DEVICE = 9,
	ROCED_LIST_IDS = 10,
	ROCED_LIST_DEVICES = 11,
	ROCED_ADD_SOCKET = 12,
	ROCED_REMOVE_SOCKET = 13,
	ROCED_QUERY_DEVICE = 16,
	ROCED_QUERY_PORT = 17,
	ROCED_QUERY_GID_TABLE = 18,
	ROCED_QUERY_PKEY = 19,
	ROCED_COUNTERS = 20,
	ROCED_GET_ASYNC_EVENT = 21,
	ROCED_QUERY_RT_VALUES = 22,
	ROCED_OPEN_EVERY_ASYNC_EVENT = 23,
	ROCED_OPEN_ASYNC_EVENTS = 24,
	ROCED_CLOSE_ASYNC_EVENTS = 25,
	ROCED_ALLOC_PD = 32,
	ROCED_DEALLOC_PD = 33,
	ROCED_ALLOC_MR = 34,
	ROCED_DEREG_MR = 35,
	ROCED_REREG_MR = 36,
	ROCED_ALLOC_MW = 37,
	ROCED_DEALLOC_MW = 38,
	ROCED_ALLOC_DM = 39,
	ROCED_FREE_DM = 40,
	ROCED_REG_DM_MR = 41,
	ROCED_ALLOC_NULL_MR = 42,
	ROCED_SHARE_MEMORY = 43,
	ROCED_REG_MR = 44,
	ROCED_REREG_MR_MEMORY = 45,
	ROCED_ALLOC_FAST_MR = 46,
	ROCED_ALLOC_COHERENT = 47,
	ROCED_CREATE_CQ = 48,
	ROCED_DESTROY_CQ = 49,
	ROCED_RESIZE_CQ = 50,
	ROCED_MODIFY_CQ = 51,
	ROCED_CHECK_CQ = 52,
	ROCED_MAP_FMR = 53,
	ROCED_UNMAP_FMR = 54,
	ROCED_CHECK_MR_STATUS = 55,
	ROCED_CREATE_COMP_CHANNEL = 56,
	ROCED_DESTROY_COMP_CHANNEL = 57,
	ROCED_REG_FILE_MR = 58,
	ROCED_REREG_FILE_MR = 59,
	ROCED_CREATE_QP = 64,
	ROCED_MODIFY_QP = 65,
	ROCED_QUERY_QP = 66,
	ROCED_DESTROY_QP = 67,
	ROCED_CREATE_XRC_TARGET = 68,
	ROCED_OPEN_QP = 69,
	ROCED_CREATE_SRQ = 72,
	ROCED_MODIFY_SRQ = 73,
	ROCED_QUERY_SRQ = 74,
	ROCED_DESTROY_SRQ = 75,
	ROCED_PASS_FILE = 76,
	ROCED_OPEN_XRCD = 77,
	ROCED_CLOSE_XRCD = 78,
	ROCED_CREATE_XRC_SRQ = 79,
	ROCED_CREATE_AH = 80,
	ROCED_DESTROY_AH = 81,
	ROCED_MODIFY_AH = 82,
	ROCED_QUERY_AH = 83,
	ROCED_CREATE_COUNTERS = 84,
	ROCED_ATTACH_COUNTERS = 85,
	ROCED_READ_QP_COUNTERS = 86,
	ROCED_DESTROY_COUNTERS = 87,
	ROCED_ATTACH_MCAST = 96,
	ROCED_DETACH_MCAST = 97,
	ROCED_JOIN_MULTICAST = 98,
	ROCED_LEAVE_MULTICAST = 99,
	ROCED_CREATE_EVENT_CHANNEL = 112,
	ROCED_DESTROY_EVENT_CHANNEL = 113,
	ROCED_GET_CM_EVENT = 114,
	ROCED_CREATE_ID = 115,
	ROCED_DESTROY_ID = 116,
	ROCED_MIGRATE_ID = 117,
	ROCED_SET_ID_OPTION = 118,
	ROCED_QUERY_ID = 119,
	ROCED_BIND_ID = 120,
	ROCED_FIND_ROUTE = 121,
	ROCED_RESOLVE_ID_ADDR = 122,
	ROCED_RESOLVE_ID_ROUTE = 123,
	ROCED_INIT_ID_QP_ATTR = 124,
	ROCED_LISTEN_ID = 125,
	ROCED_CONNECT_ID = 126,
	ROCED_ACCEPT_ID = 127,
	ROCED_REJECT_ID = 128,
	ROCED_DISCONNECT_ID = 129,
	ROCED_NOTIFY_ID = 130,
	ROCED_JOIN_ID = 131,
	ROCED_LEAVE_ID = 132,
	ROCED_SET_ID_PATH = 133,
};

/* Begins every packet. */
struct roced_message {
	uint16_t command;
	uint16_t kind;
	uint32_t id;
};

/* Of Failure and Ended. kinds: a bit for each of enum roced_error; the first of errnos is what libibverbs gives. */
struct roced_failure {
	uint64_t kinds;
	uint32_t errnos[4];
	uint32_t text_count;
	uint8_t reserved28[4]; /* 0 */
	uint8_t text[];
};

/* Of Cancel; see enum roced_cancel_reason. */
struct roced_cancel {
	uint32_t reason;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_hello_request {
	uint32_t magic;
	uint16_t oldest;
	uint16_t newest;
};

/* An entry of the list in struct roced_hello_grant. */
struct roced_hello_entry {
	char name[64];
};

struct roced_hello_grant {
	uint16_t version;
	uint8_t reserved2[6]; /* 0 */
	uint32_t devices_count;
	uint8_t reserved12[4]; /* 0 */
	struct roced_hello_entry devices[];
};

struct roced_open_device_request {
	char device[64];
};

struct roced_place {
	uint64_t offset;
	uint64_t length;
};

struct roced_open_device_grant {
	uint64_t memory_size;
	struct roced_place doorbell;
};

struct roced_list_clients_request {
	uint64_t after;
};

/* An entry of the list in struct roced_list_clients_grant. */
struct roced_list_clients_entry {
	uint64_t number;
	uint32_t pid;
	uint32_t uid;
	char device[64];
	char command[16];
	uint64_t since;
	uint32_t pds;
	uint32_t mrs;
	uint32_t cqs;
	uint32_t qps;
	uint32_t srqs;
	uint32_t ahs;
	uint32_t comp_channels;
	uint32_t memberships;
	uint32_t attachments;
	uint32_t owner;
	uint64_t memory_size;
};

struct roced_list_clients_grant {
	uint8_t more;
	uint8_t reserved1[7]; /* 0 */
	uint32_t clients_count;
	uint8_t reserved12[4]; /* 0 */
	struct roced_list_clients_entry clients[];
};

struct roced_object_place {
	uint64_t client;
	uint32_t place;
	uint32_t index;
};

struct roced_list_objects_request {
	uint16_t kind;
	uint8_t reserved2[6]; /* 0 */
	struct roced_object_place from;
};

struct roced_object {
	uint32_t handle;
	uint32_t number;
	uint8_t type;
	uint8_t state;
	uint8_t failed;
	uint8_t full;
	uint32_t users;
	uint32_t pd;
	uint32_t srq;
	uint32_t send_cq;
	uint32_t recv_cq;
	uint32_t size;
	uint32_t used;
	uint32_t recv_size;
	uint32_t recv_used;
	uint32_t limit;
	uint32_t qkey;
	uint32_t psn;
	uint16_t mlid;
	uint8_t reserved62[2]; /* 0 */
	uint32_t access;
	uint32_t peer_qpn;
	uint64_t address;
	uint64_t length;
	uint8_t source[16];
	uint8_t dest[16];
};

/* An entry of the list in struct roced_list_objects_grant. */
struct roced_list_objects_entry {
	uint64_t client;
	uint32_t pid;
	uint32_t uid;
	struct roced_object object;
};

struct roced_list_objects_grant {
	uint8_t more;
	uint8_t reserved1[7]; /* 0 */
	struct roced_object_place next;
	uint32_t objects_count;
	uint8_t reserved28[4]; /* 0 */
	struct roced_list_objects_entry objects[];
};

struct roced_read_counters_request {
	char device[64];
};

/* An entry of the list in struct roced_read_counters_grant. */
struct roced_read_counters_entry {
	char place[16];
	char name[40];
	uint64_t value;
	uint8_t lost;
	uint8_t reserved65[7]; /* 0 */
};

struct roced_read_counters_grant {
	uint32_t counters_count;
	uint8_t reserved4[4]; /* 0 */
	struct roced_read_counters_entry counters[];
};

/* An entry of the list in struct roced_next_events_grant. */
struct roced_next_events_entry {
	uint64_t time;
	uint64_t client;
	uint32_t pid;
	uint32_t uid;
	char device[64];
	char command[16];
	uint8_t kind;
	uint8_t type;
	uint8_t state;
	uint8_t reserved107[1]; /* 0 */
	uint16_t object;
	uint8_t reserved110[2]; /* 0 */
	uint32_t number;
	uint8_t reserved116[4]; /* 0 */
};

struct roced_next_events_grant {
	uint64_t lost;
	uint32_t events_count;
	uint8_t reserved12[4]; /* 0 */
	struct roced_next_events_entry events[];
};

struct roced_start_capture_request {
	char device[64];
	uint32_t qpn;
	uint32_t snap;
	uint8_t group[16];
};

struct roced_look_device_request {
	char device[64];
	uint32_t from;
	uint8_t reserved68[4]; /* 0 */
};

/* An entry of the list in struct roced_look_device_grant. */
struct roced_look_device_entry {
	uint8_t gid[16];
	int64_t index;
	char interface[16];
	uint32_t ifindex;
	uint8_t type;
	uint8_t port;
	uint8_t reserved46[2]; /* 0 */
};

struct roced_query_device_grant {
	char name[64];
	char firmware_version[64];
	uint64_t node_guid;
	int64_t max_qp;
	int64_t max_qp_wr;
	int64_t max_sge;
	int64_t max_inline;
	int64_t max_srq;
	int64_t max_srq_wr;
	int64_t max_srq_sge;
	int64_t max_cq;
	int64_t max_cqe;
	int64_t max_mr;
	uint64_t max_mr_size;
	int64_t max_pd;
	int64_t max_ah;
	int64_t max_pkeys;
	int64_t max_mcast_grp;
	int64_t max_mcast_qp_attach;
	int64_t max_total_mcast_qp_attach;
	int64_t phys_port_cnt;
	char xdp_mode[16];
	char af_xdp_mode[16];
	char send_mode[16];
	char send_reason[256];
	uint64_t sys_image_guid;
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	uint32_t device_cap_flags;
	uint64_t page_size_cap;
	uint64_t completion_timestamp_mask;
	uint64_t hca_core_clock;
	uint16_t max_cq_count;
	uint16_t max_cq_period;
	uint8_t atomic_cap;
	uint8_t workers;
	uint8_t reserved638[2]; /* 0 */
	int64_t max_mw;
	int64_t max_qp_rd_atom;
	int64_t max_qp_init_rd_atom;
	int64_t max_res_rd_atom;
	int64_t max_fast_reg_page_list_len;
};

struct roced_query_port_grant {
	uint8_t state;
	uint8_t max_mtu;
	uint8_t active_mtu;
	uint8_t reserved3[1]; /* 0 */
	uint32_t max_msg_size;
	uint64_t qkey_violations;
	int64_t gid_table_length;
	int64_t pkey_table_length;
	int64_t interface_mtu;
	int64_t interface_speed;
	uint64_t bad_pkey_cntr;
	uint32_t port_cap_flags;
	uint8_t phys_state;
	uint8_t link_layer;
	uint8_t active_width;
	uint8_t active_speed;
	uint8_t max_vl_num;
	uint8_t lmc;
	uint8_t sm_sl;
	uint8_t subnet_timeout;
	uint8_t init_type_reply;
	uint8_t reserved69[3]; /* 0 */
	uint16_t lid;
	uint16_t sm_lid;
	uint8_t reserved76[4]; /* 0 */
};

struct roced_look_device_grant {
	uint8_t open;
	uint8_t more;
	uint8_t reserved2[6]; /* 0 */
	char why[256];
	struct roced_query_device_grant attr;
	struct roced_query_port_grant port;
	uint32_t gids_count;
	uint8_t reserved1028[4]; /* 0 */
	struct roced_look_device_entry gids[];
};

struct roced_list_ids_request {
	struct roced_object_place from;
};

struct roced_addr_port {
	uint8_t family;
	uint8_t reserved1[1]; /* 0 */
	uint16_t port;
	uint8_t addr[16];
	char zone[64];
	uint8_t reserved84[4]; /* 0 */
};

/* An entry of the list in struct roced_list_ids_grant. */
struct roced_list_ids_entry {
	uint64_t client;
	uint32_t pid;
	uint32_t uid;
	uint32_t handle;
	uint16_t port_space;
	uint8_t type;
	uint8_t reserved23[1]; /* 0 */
	uint32_t events;
	uint32_t groups;
	char state[16];
	struct roced_addr_port local;
	struct roced_addr_port remote;
};

struct roced_list_ids_grant {
	uint8_t more;
	uint8_t reserved1[7]; /* 0 */
	struct roced_object_place next;
	uint32_t ids_count;
	uint8_t reserved28[4]; /* 0 */
	struct roced_list_ids_entry ids[];
};

/* An entry of the list in struct roced_list_devices_grant. */
struct roced_list_devices_entry {
	char name[64];
	uint64_t node_guid;
	uint64_t sys_image_guid;
	uint8_t node_type;
	uint8_t reserved81[7]; /* 0 */
};

struct roced_list_devices_grant {
	uint32_t devices_count;
	uint8_t reserved4[4]; /* 0 */
	struct roced_list_devices_entry devices[];
};

struct roced_add_socket_request {
	char name[64];
	char path[112];
};

struct roced_add_socket_grant {
	char name[64];
	char path[112];
};

struct roced_remove_socket_request {
	char name[64];
	char path[112];
};

struct roced_query_port_request {
	uint8_t port;
	uint8_t reserved1[7]; /* 0 */
};

struct roced_query_gid_table_request {
	uint8_t port;
	uint8_t reserved1[7]; /* 0 */
};

/* An entry of the list in struct roced_query_gid_table_grant. */
struct roced_query_gid_table_entry {
	uint8_t gid[16];
	int64_t index;
	char interface[16];
	uint32_t ifindex;
	uint8_t type;
	uint8_t port;
	uint8_t reserved46[2]; /* 0 */
};

struct roced_query_gid_table_grant {
	int64_t table_length;
	uint32_t gids_count;
	uint8_t reserved12[4]; /* 0 */
	struct roced_query_gid_table_entry gids[];
};

struct roced_query_pkey_request {
	uint8_t port;
	uint8_t reserved1[7]; /* 0 */
	int64_t index;
};

struct roced_query_pkey_grant {
	uint16_t pkey;
	uint8_t reserved2[6]; /* 0 */
};

/* An entry of the list in struct roced_counters_grant. */
struct roced_counters_entry {
	char place[16];
	char name[40];
	uint64_t value;
	uint8_t lost;
	uint8_t reserved65[7]; /* 0 */
};

struct roced_counters_grant {
	uint32_t counters_count;
	uint8_t reserved4[4]; /* 0 */
	struct roced_counters_entry counters[];
};

struct roced_get_async_event_grant {
	uint8_t type;
	uint8_t port;
	uint8_t reserved2[6]; /* 0 */
	uint64_t event_id;
};

struct roced_query_rt_values_grant {
	uint64_t raw_clock;
};

struct roced_open_async_events_request {
	uint64_t first;
	uint64_t last;
};

struct roced_close_async_events_request {
	uint64_t first;
	uint64_t last;
};

struct roced_alloc_pd_grant {
	uint32_t pd;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_dealloc_pd_request {
	uint32_t pd;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_alloc_mr_request {
	uint32_t pd;
	uint32_t access;
	int64_t length;
	uint64_t iova;
};

struct roced_alloc_mr_grant {
	uint32_t mr;
	uint32_t lkey;
	struct roced_place memory;
};

struct roced_dereg_mr_request {
	uint32_t mr;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_rereg_mr_request {
	uint32_t mr;
	uint32_t flags;
	uint32_t pd;
	uint32_t access;
	uint64_t iova;
};

struct roced_alloc_mw_request {
	uint32_t pd;
	uint8_t type;
	uint8_t reserved5[3]; /* 0 */
};

struct roced_alloc_mw_grant {
	uint32_t mw;
	uint32_t rkey;
};

struct roced_dealloc_mw_request {
	uint32_t mw;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_alloc_dm_request {
	int64_t length;
};

struct roced_alloc_dm_grant {
	uint32_t dm;
	uint8_t reserved4[4]; /* 0 */
	struct roced_place memory;
};

struct roced_free_dm_request {
	uint32_t dm;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_reg_dm_mr_request {
	uint32_t pd;
	uint32_t dm;
	int64_t offset;
	int64_t length;
	uint32_t access;
	uint8_t reserved28[4]; /* 0 */
};

struct roced_reg_dm_mr_grant {
	uint32_t mr;
	uint32_t lkey;
};

struct roced_alloc_null_mr_request {
	uint32_t pd;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_alloc_null_mr_grant {
	uint32_t mr;
	uint32_t lkey;
};

struct roced_share_memory_request {
	uint8_t has_file;
	uint8_t reserved1[7]; /* 0 */
	uint64_t size;
};

struct roced_share_memory_grant {
	uint64_t size;
};

struct roced_reg_mr_request {
	uint32_t pd;
	uint32_t access;
	int64_t length;
	uint64_t iova;
	uint64_t offset;
};

struct roced_reg_mr_grant {
	uint32_t mr;
	uint32_t lkey;
};

struct roced_rereg_mr_memory_request {
	uint32_t mr;
	uint32_t flags;
	uint32_t pd;
	uint32_t access;
	uint64_t iova;
	int64_t length;
	uint64_t offset;
};

struct roced_alloc_fast_mr_request {
	uint32_t pd;
	uint8_t type;
	uint8_t reserved5[3]; /* 0 */
	int64_t entries;
};

struct roced_alloc_fast_mr_grant {
	uint32_t mr;
	uint32_t lkey;
	struct roced_place memory;
};

struct roced_alloc_coherent_request {
	int64_t length;
};

struct roced_alloc_coherent_grant {
	uint32_t mr;
	uint32_t lkey;
	struct roced_place memory;
};

struct roced_create_cq_request {
	int64_t entries;
	uint64_t event_id;
	uint32_t channel;
	uint32_t flags;
	int64_t comp_vector;
	uint64_t wc_flags;
};

struct roced_geometry {
	uint32_t entries;
	uint32_t stride;
};

struct roced_create_cq_grant {
	uint32_t cq;
	uint8_t reserved4[4]; /* 0 */
	struct roced_place queue_memory;
	struct roced_geometry queue;
};

struct roced_destroy_cq_request {
	uint32_t cq;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_resize_cq_request {
	uint32_t cq;
	uint8_t reserved4[4]; /* 0 */
	int64_t entries;
};

struct roced_resize_cq_grant {
	struct roced_place queue_memory;
	struct roced_geometry queue;
};

struct roced_modify_cq_request {
	uint32_t cq;
	uint16_t count;
	uint16_t period;
};

struct roced_check_cq_request {
	uint32_t cq;
	uint32_t armings;
};

struct roced_map_fmr_request {
	uint32_t mr;
	uint32_t key;
	uint64_t length;
	uint32_t access;
	uint32_t entries;
	uint64_t iova;
};

struct roced_unmap_fmr_request {
	uint32_t mr;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_check_mr_status_request {
	uint32_t mr;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_check_mr_status_grant {
	uint8_t failed;
	uint8_t err_type;
	uint8_t reserved2[2]; /* 0 */
	uint32_t expected;
	uint32_t actual;
	uint32_t key;
	uint64_t sig_err_offset;
};

struct roced_create_comp_channel_grant {
	uint32_t channel;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_destroy_comp_channel_request {
	uint32_t channel;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_reg_file_mr_request {
	uint32_t pd;
	uint32_t access;
	int64_t length;
	uint64_t iova;
	uint64_t offset;
};

struct roced_reg_file_mr_grant {
	uint32_t mr;
	uint32_t lkey;
};

struct roced_rereg_file_mr_request {
	uint32_t mr;
	uint32_t flags;
	uint32_t pd;
	uint32_t access;
	uint64_t iova;
	int64_t length;
	uint64_t offset;
};

struct roced_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
};

struct roced_create_qp_request {
	uint32_t pd;
	uint32_t send_cq;
	uint32_t recv_cq;
	struct roced_qp_cap cap;
	uint32_t doorbell_index;
	uint32_t completion_token;
	uint64_t event_id;
	uint8_t type;
	uint8_t sig_all;
	uint8_t block_self_mcast;
	uint8_t port;
	uint32_t srq;
};

struct roced_create_qp_grant {
	uint32_t qp;
	uint32_t qp_num;
	struct roced_qp_cap cap;
	uint8_t reserved28[4]; /* 0 */
	struct roced_place send_queue_memory;
	struct roced_geometry send_queue;
	struct roced_place recv_queue_memory;
	struct roced_geometry recv_queue;
};

struct roced_ah_attr {
	uint8_t dgid[16];
	int64_t sgid_index;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t port;
	uint8_t sl;
};

struct roced_qp_attr {
	uint8_t state;
	uint8_t cur_state;
	uint16_t pkey_index;
	uint8_t port;
	uint8_t en_sqd_async_notify;
	uint8_t reserved6[2]; /* 0 */
	uint32_t qkey;
	uint32_t sq_psn;
	struct roced_qp_cap cap;
	uint32_t dest_qp_num;
	uint32_t rq_psn;
	uint32_t qp_access_flags;
	uint8_t path_mtu;
	uint8_t path_mig_state;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	struct roced_ah_attr ah;
};

struct roced_modify_qp_request {
	uint32_t qp;
	uint32_t mask;
	struct roced_qp_attr attr;
	uint32_t completion_token;
	uint8_t reserved100[4]; /* 0 */
};

struct roced_modify_qp_grant {
	struct roced_qp_attr attr;
};

struct roced_query_qp_request {
	uint32_t qp;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_query_qp_grant {
	struct roced_qp_attr attr;
	uint8_t leaving;
	uint8_t reserved89[7]; /* 0 */
};

struct roced_destroy_qp_request {
	uint32_t qp;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_create_xrc_target_request {
	uint32_t xrcd;
	uint8_t reserved4[4]; /* 0 */
	uint64_t event_id;
};

struct roced_create_xrc_target_grant {
	uint32_t qp;
	uint32_t qp_num;
	uint8_t state;
	uint8_t reserved9[7]; /* 0 */
};

struct roced_open_qp_request {
	uint32_t xrcd;
	uint32_t qp_num;
	uint64_t event_id;
};

struct roced_open_qp_grant {
	uint32_t qp;
	uint32_t qp_num;
	uint8_t state;
	uint8_t reserved9[7]; /* 0 */
};

struct roced_create_srq_request {
	uint32_t pd;
	uint8_t reserved4[4]; /* 0 */
	uint32_t max_wr;
	uint32_t max_sge;
	uint64_t event_id;
};

struct roced_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t limit;
};

struct roced_create_srq_grant {
	uint32_t srq;
	struct roced_srq_attr attr;
	struct roced_place queue_memory;
	struct roced_geometry queue;
};

struct roced_modify_srq_request {
	uint32_t srq;
	struct roced_srq_attr attr;
	uint32_t mask;
	uint8_t reserved20[4]; /* 0 */
};

struct roced_modify_srq_grant {
	struct roced_srq_attr attr;
	uint8_t reserved12[4]; /* 0 */
	struct roced_place queue_memory;
	struct roced_geometry queue;
};

struct roced_query_srq_request {
	uint32_t srq;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_query_srq_grant {
	struct roced_srq_attr attr;
	uint8_t reserved12[4]; /* 0 */
};

struct roced_destroy_srq_request {
	uint32_t srq;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_open_xrcd_request {
	uint8_t has_file;
	uint8_t create;
	uint8_t exclusive;
	uint8_t reserved3[5]; /* 0 */
};

struct roced_open_xrcd_grant {
	uint32_t xrcd;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_close_xrcd_request {
	uint32_t xrcd;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_create_xrc_srq_request {
	uint32_t pd;
	uint32_t xrcd;
	uint32_t cq;
	uint32_t completion_token;
	uint32_t max_wr;
	uint32_t max_sge;
	uint64_t event_id;
};

struct roced_create_xrc_srq_grant {
	struct roced_create_srq_grant basic;
	uint32_t srq_num;
	uint8_t reserved44[4]; /* 0 */
};

struct roced_create_ah_request {
	uint32_t pd;
	uint8_t no_wait;
	uint8_t reserved5[3]; /* 0 */
	struct roced_ah_attr attr;
};

struct roced_create_ah_grant {
	uint32_t ah;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_destroy_ah_request {
	uint32_t ah;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_modify_ah_request {
	uint32_t ah;
	uint8_t reserved4[4]; /* 0 */
	struct roced_ah_attr attr;
};

struct roced_query_ah_request {
	uint32_t ah;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_query_ah_grant {
	struct roced_ah_attr attr;
};

struct roced_create_counters_grant {
	uint32_t counters;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_attach_counters_request {
	uint32_t counters;
	uint32_t of;
	uint32_t what;
	uint32_t index;
};

struct roced_read_qp_counters_request {
	uint32_t counters;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_read_qp_counters_grant {
	uint64_t value0;
	uint64_t value1;
	uint64_t value2;
	uint64_t value3;
	uint64_t value4;
	uint64_t value5;
	uint64_t value6;
	uint64_t value7;
	uint64_t value8;
	uint64_t value9;
	uint64_t value10;
	uint64_t value11;
	uint64_t value12;
	uint64_t value13;
	uint64_t value14;
	uint64_t value15;
};

struct roced_destroy_counters_request {
	uint32_t counters;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_attach_mcast_request {
	uint32_t qp;
	uint16_t mlid;
	uint8_t reserved6[2]; /* 0 */
	uint8_t mgid[16];
};

struct roced_detach_mcast_request {
	uint32_t qp;
	uint16_t mlid;
	uint8_t reserved6[2]; /* 0 */
	uint8_t mgid[16];
};

struct roced_join_multicast_request {
	uint8_t kind;
	uint8_t reserved1[3]; /* 0 */
	uint8_t family;
	uint8_t reserved5[3]; /* 0 */
	uint8_t group[16];
	char zone[64];
};

struct roced_join_multicast_grant {
	uint32_t membership;
	uint8_t reserved4[4]; /* 0 */
	uint8_t mgid[16];
	uint8_t sgid[16];
};

struct roced_leave_multicast_request {
	uint32_t membership;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_create_event_channel_grant {
	uint32_t channel;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_destroy_event_channel_request {
	uint32_t channel;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_get_cm_event_request {
	uint32_t channel;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_conn_param {
	uint32_t qpn;
	uint32_t qkey;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t reserved14[2]; /* 0 */
};

struct roced_get_cm_event_grant {
	uint8_t found;
	uint8_t drained;
	uint8_t type;
	uint8_t reserved3[1]; /* 0 */
	int32_t status;
	uint32_t id;
	uint32_t listener;
	uint64_t context;
	struct roced_ah_attr ah;
	struct roced_conn_param param;
	uint32_t private_data_count;
	uint8_t reserved76[4]; /* 0 */
	uint8_t private_data[];
};

struct roced_create_id_request {
	uint32_t channel;
	uint16_t port_space;
	uint8_t qp_type;
	uint8_t reserved7[1]; /* 0 */
};

struct roced_create_id_grant {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_destroy_id_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_migrate_id_request {
	uint32_t id;
	uint32_t channel;
};

struct roced_set_id_option_request {
	uint32_t id;
	uint8_t option;
	uint8_t reserved5[3]; /* 0 */
	uint32_t value;
	uint8_t reserved12[4]; /* 0 */
};

struct roced_query_id_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_query_id_grant {
	uint16_t port_space;
	uint8_t qp_type;
	uint8_t on_device;
	uint8_t reserved4[4]; /* 0 */
	struct roced_ah_attr ah;
	struct roced_addr_port local;
	struct roced_addr_port remote;
};

struct roced_bind_id_request {
	uint32_t id;
	uint8_t shared;
	uint8_t reserved5[3]; /* 0 */
	uint64_t whose;
	struct roced_addr_port addr;
};

struct roced_bind_id_grant {
	struct roced_addr_port addr;
};

struct roced_find_route_request {
	struct roced_addr_port source;
	struct roced_addr_port dest;
};

struct roced_find_route_grant {
	struct roced_addr_port source;
};

struct roced_resolve_id_addr_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
	int64_t timeout_ns;
	struct roced_addr_port source;
	struct roced_addr_port dest;
};

struct roced_resolve_id_route_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_init_id_qp_attr_request {
	uint32_t id;
	uint8_t state;
	uint8_t reserved5[3]; /* 0 */
};

struct roced_init_id_qp_attr_grant {
	uint32_t mask;
	uint8_t reserved4[4]; /* 0 */
	struct roced_qp_attr attr;
};

struct roced_listen_id_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
	int64_t backlog;
};

struct roced_connect_id_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
	struct roced_conn_param param;
	uint32_t private_data_count;
	uint8_t reserved28[4]; /* 0 */
	uint8_t private_data[];
};

struct roced_accept_id_request {
	uint32_t id;
	uint8_t response;
	uint8_t reserved5[3]; /* 0 */
	struct roced_conn_param param;
	uint32_t private_data_count;
	uint8_t reserved28[4]; /* 0 */
	uint8_t private_data[];
};

struct roced_reject_id_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
	uint32_t private_data_count;
	uint8_t reserved12[4]; /* 0 */
	uint8_t private_data[];
};

struct roced_disconnect_id_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
};

struct roced_notify_id_request {
	uint32_t id;
	uint8_t event;
	uint8_t reserved5[3]; /* 0 */
};

struct roced_join_id_request {
	uint32_t id;
	uint8_t kind;
	uint8_t reserved5[3]; /* 0 */
	uint64_t context;
	struct roced_addr_port group;
};

struct roced_leave_id_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
	struct roced_addr_port group;
};

struct roced_leave_id_grant {
	uint64_t context;
};

struct roced_set_id_path_request {
	uint32_t id;
	uint8_t reserved4[4]; /* 0 */
	struct roced_ah_attr path;
};

#ifdef __cplusplus
}
#endif

#endif
