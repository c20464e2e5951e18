/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdmacm's ABI: its structures and numbers, as programs that were compiled for Debian's library have them.
 *
 * Sources: the manual pages rdma_*(3), and sizes and offsets as measured; verbs/c/ctest compares each with
 * Debian's headers. Names of release 1.4 are those of the manual pages of rdma-core 57.
 */
#ifndef ROCED_CM_ABI_H
#define ROCED_CM_ABI_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../abi.h"

/* rdma_get_cm_event(3). */
enum rdma_cm_event_type {
	RDMA_CM_EVENT_ADDR_RESOLVED = 0,
	RDMA_CM_EVENT_ADDR_ERROR = 1,
	RDMA_CM_EVENT_ROUTE_RESOLVED = 2,
	RDMA_CM_EVENT_ROUTE_ERROR = 3,
	RDMA_CM_EVENT_CONNECT_REQUEST = 4,
	RDMA_CM_EVENT_CONNECT_RESPONSE = 5,
	RDMA_CM_EVENT_CONNECT_ERROR = 6,
	RDMA_CM_EVENT_UNREACHABLE = 7,
	RDMA_CM_EVENT_REJECTED = 8,
	RDMA_CM_EVENT_ESTABLISHED = 9,
	RDMA_CM_EVENT_DISCONNECTED = 10,
	RDMA_CM_EVENT_DEVICE_REMOVAL = 11,
	RDMA_CM_EVENT_MULTICAST_JOIN = 12,
	RDMA_CM_EVENT_MULTICAST_ERROR = 13,
	RDMA_CM_EVENT_ADDR_CHANGE = 14,
	RDMA_CM_EVENT_TIMEWAIT_EXIT = 15,
	RDMA_CM_EVENT_ADDRINFO_RESOLVED = 16, /* this and the following: RDMACM_1.4 */
	RDMA_CM_EVENT_ADDRINFO_ERROR = 17,
	RDMA_CM_EVENT_USER = 18,
	RDMA_CM_EVENT_INTERNAL = 19,
};

/* rdma_create_id(3). On Ethernet there are TCP and UDP. */
enum rdma_port_space {
	RDMA_PS_IPOIB = 0x0002,
	RDMA_PS_TCP = 0x0106,
	RDMA_PS_UDP = 0x0111,
	RDMA_PS_IB = 0x013F,
};

/* Of responder_resources and initiator_depth: as many as there can be. */
enum {
	RDMA_MAX_RESP_RES = 0xFF,
	RDMA_MAX_INIT_DEPTH = 0xFF,
};

/* rdma_set_option(3). */
enum {
	RDMA_OPTION_ID = 0,
	RDMA_OPTION_IB = 1,
};

enum {
	RDMA_OPTION_ID_TOS = 0,         /* uint8_t */
	RDMA_OPTION_ID_REUSEADDR = 1,   /* int */
	RDMA_OPTION_ID_AFONLY = 2,      /* int */
	RDMA_OPTION_ID_ACK_TIMEOUT = 3, /* uint8_t */
};

enum {
	RDMA_OPTION_IB_PATH = 1, /* struct ibv_path_data[] */
};

/* rdma_getaddrinfo(3), rdma_resolve_addrinfo(3). */
enum {
	RAI_PASSIVE = 0x01,
	RAI_NUMERICHOST = 0x02,
	RAI_NOROUTE = 0x04,
	RAI_FAMILY = 0x08,
	RAI_SA = 0x10,
	RAI_DNS = 0x20,
};

/* rdma_join_multicast_ex(3). */
enum rdma_cm_join_mc_attr_mask {
	RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1 << 0,
	RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 1 << 1,
	RDMA_CM_JOIN_MC_ATTR_RESERVED = 1 << 2,
};

enum rdma_cm_mc_join_flags {
	RDMA_MC_JOIN_FLAG_FULLMEMBER = 0,
	RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER = 1,
	RDMA_MC_JOIN_FLAG_RESERVED = 2,
};

/* An entry of rdma_route.path_rec. On Ethernet there are no LIDs. */
struct ibv_sa_path_rec {
	union ibv_gid dgid;
	union ibv_gid sgid;
	uint16_t dlid; /* big-endian, as all of 16 and 32 bits here but raw_traffic and reversible */
	uint16_t slid;
	int raw_traffic;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t traffic_class;
	int reversible;
	uint8_t numb_path;
	uint16_t pkey;
	uint8_t sl;
	uint8_t mtu_selector;
	uint8_t mtu;
	uint8_t rate_selector;
	uint8_t rate;
	uint8_t packet_life_time_selector;
	uint8_t packet_life_time;
	uint8_t preference;
};

/* The format of RDMA_OPTION_IB_PATH and ai_route: all fields are big-endian. */
struct ibv_path_record {
	uint64_t service_id;
	union ibv_gid dgid;
	union ibv_gid sgid;
	uint16_t dlid;
	uint16_t slid;
	uint32_t flowlabel_hoplimit; /* bits 27 to 8, and 7 to 0 */
	uint8_t tclass;
	uint8_t reversible_numpath;
	uint16_t pkey;
	uint16_t qosclass_sl; /* bits 15 to 4, and 3 to 0 */
	uint8_t mtu;
	uint8_t rate;
	uint8_t packetlifetime;
	uint8_t preference;
	uint8_t reserved[6];
};

struct ibv_path_data {
	uint32_t flags;
	uint32_t reserved;
	struct ibv_path_record path;
};

struct rdma_ib_addr {
	union ibv_gid sgid;
	union ibv_gid dgid;
	uint16_t pkey; /* big-endian */
};

struct rdma_addr {
	union {
		struct sockaddr src_addr;
		struct sockaddr_in src_sin;
		struct sockaddr_in6 src_sin6;
		struct sockaddr_storage src_storage;
	};
	union {
		struct sockaddr dst_addr;
		struct sockaddr_in dst_sin;
		struct sockaddr_in6 dst_sin6;
		struct sockaddr_storage dst_storage;
	};
	union {
		struct rdma_ib_addr ibaddr;
	} addr;
};

struct rdma_route {
	struct rdma_addr addr;
	struct ibv_sa_path_rec *path_rec;
	int num_paths;
};

struct rdma_event_channel {
	int fd;
};

struct rdma_cm_id {
	struct ibv_context *verbs;
	struct rdma_event_channel *channel;
	void *context;
	struct ibv_qp *qp;
	struct rdma_route route;
	enum rdma_port_space ps;
	uint8_t port_num;
	struct rdma_cm_event *event;
	struct ibv_comp_channel *send_cq_channel;
	struct ibv_cq *send_cq;
	struct ibv_comp_channel *recv_cq_channel;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	int qp_type;
};

/* rdma_connect(3), rdma_accept(3). */
struct rdma_conn_param {
	const void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;     /* this and qp_num: of ids without a queue pair */
	uint32_t qp_num;
};

struct rdma_ud_param {
	const void *private_data;
	uint8_t private_data_len;
	struct ibv_ah_attr ah_attr;
	uint32_t qp_num;
	uint32_t qkey;
};

struct rdma_cm_event {
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id;
	enum rdma_cm_event_type event;
	int status;
	union {
		struct rdma_conn_param conn;
		struct rdma_ud_param ud;
		uint64_t arg; /* of RDMA_CM_EVENT_USER and INTERNAL */
	} param;
};

struct rdma_addrinfo {
	int ai_flags;
	int ai_family;
	int ai_qp_type;
	int ai_port_space;
	socklen_t ai_src_len;
	socklen_t ai_dst_len;
	struct sockaddr *ai_src_addr;
	struct sockaddr *ai_dst_addr;
	char *ai_src_canonname;
	char *ai_dst_canonname;
	size_t ai_route_len;
	void *ai_route;
	size_t ai_connect_len;
	void *ai_connect;
	struct rdma_addrinfo *ai_next;
};

struct rdma_cm_join_mc_attr_ex {
	uint32_t comp_mask;  /* of enum rdma_cm_join_mc_attr_mask */
	uint32_t join_flags; /* of enum rdma_cm_mc_join_flags */
	struct sockaddr *addr;
};

#endif
