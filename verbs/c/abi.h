/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures of libibverbs' ABI, as programs of rdma-core 44 and later have them. Our own
 * declarations: the sizes and offsets are compared with Debian's header by a test (ctest). The numbers
 * in the fields are those of numbers.h.
 */
#ifndef ROCED_ABI_H
#define ROCED_ABI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "../../datapath/ring/numbers.h"

typedef uint32_t be32;
typedef uint64_t be64;
typedef uint16_t be16;

struct ibv_context;
struct ibv_device;
struct ibv_flow;
struct ibv_flow_attr;
struct ibv_flow_action;
struct ibv_flow_action_esp_attr;

enum { IBV_NAME_MAX = 64, IBV_PATH_MAX = 256, IBV_NODE_CA = 1, IBV_TRANSPORT_IB = 0 };

union ibv_gid {
	uint8_t raw[16];
	struct { be64 subnet_prefix, interface_id; } global;
};

struct ibv_gid_entry {
	union ibv_gid gid;
	uint32_t gid_index, port_num, gid_type, ndev_ifindex;
};

struct ibv_device_attr {
	char fw_ver[64];
	be64 node_guid, sys_image_guid;
	uint64_t max_mr_size, page_size_cap;
	uint32_t vendor_id, vendor_part_id, hw_ver;
	int max_qp, max_qp_wr;
	unsigned device_cap_flags;
	int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd;
	int max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom;
	int atomic_cap, max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp;
	int max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach;
	int max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay, phys_port_cnt;
};

struct ibv_query_device_ex_input { uint32_t comp_mask; };

struct ibv_odp_caps {
	uint64_t general_caps;
	struct { uint32_t rc_odp_caps, uc_odp_caps, ud_odp_caps; } per_transport_caps;
};
enum { IBV_ODP_SUPPORT = 1, IBV_ODP_SEND = 1, IBV_ODP_RECV = 2, IBV_ODP_WRITE = 4, IBV_ODP_READ = 8,
	IBV_ODP_ATOMIC = 16, IBV_ODP_SRQ_RECV = 32 };

struct ibv_device_attr_ex {
	struct ibv_device_attr orig_attr;
	uint32_t comp_mask;
	struct ibv_odp_caps odp_caps;
	uint64_t completion_timestamp_mask, hca_core_clock, device_cap_flags_ex;
	struct { uint32_t max_tso, supported_qpts; } tso_caps;
	struct {
		uint32_t supported_qpts, max_rwq_indirection_tables, max_rwq_indirection_table_size;
		uint64_t rx_hash_fields_mask;
		uint8_t rx_hash_function;
	} rss_caps;
	uint32_t max_wq_type_rq;
	struct { uint32_t qp_rate_limit_min, qp_rate_limit_max, supported_qpts; } packet_pacing_caps;
	uint32_t raw_packet_caps;
	struct { uint32_t max_rndv_hdr_size, max_num_tags, flags, max_ops, max_sge; } tm_caps;
	struct { uint16_t max_cq_count, max_cq_period; } cq_mod_caps;
	uint64_t max_dm_size;
	struct { uint16_t fetch_add, swap, compare_swap; } pci_atomic_caps;
	uint32_t xrc_odp_caps, phys_port_cnt_ex;
};

/* The program's form may end earlier: the first versions ended after link_layer or flags. */
struct ibv_port_attr {
	int state, max_mtu, active_mtu, gid_tbl_len;
	uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
	uint16_t pkey_tbl_len, lid, sm_lid;
	uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed;
	uint8_t phys_state, link_layer, flags;
	uint16_t port_cap_flags2;
	uint32_t active_speed_ex; /* from rdma-core 57 on */
};
enum { IBV_PORT_ATTR_44 = 52, IBV_QPF_GRH_REQUIRED = 1 };

struct ibv_async_event {
	union {
		struct ibv_cq *cq;
		struct ibv_qp *qp;
		struct ibv_srq *srq;
		void *any;
		int port_num;
	} element;
	int event_type;
};

struct ibv_wc {
	uint64_t wr_id;
	int status, opcode;
	uint32_t vendor_err, byte_len;
	union { be32 imm_data; uint32_t invalidated_rkey; };
	uint32_t qp_num, src_qp;
	unsigned wc_flags;
	uint16_t pkey_index, slid;
	uint8_t sl, dlid_path_bits;
};

/* Fields of the completions of an extended CQ. */
enum {
	IBV_WC_EX_BYTE_LEN = 1 << 0,
	IBV_WC_EX_IMM = 1 << 1,
	IBV_WC_EX_QP_NUM = 1 << 2,
	IBV_WC_EX_SRC_QP = 1 << 3,
	IBV_WC_EX_SLID = 1 << 4,
	IBV_WC_EX_SL = 1 << 5,
	IBV_WC_EX_DLID_PATH_BITS = 1 << 6,
	IBV_WC_EX_TIMESTAMP = 1 << 7,
	IBV_WC_EX_CVLAN = 1 << 8,
	IBV_WC_EX_FLOW_TAG = 1 << 9,
	IBV_WC_EX_TM_INFO = 1 << 10,
	IBV_WC_EX_WALLCLOCK = 1 << 11,
};

struct ibv_grh {
	be32 version_tclass_flow;
	be16 paylen;
	uint8_t next_hdr, hop_limit;
	union ibv_gid sgid, dgid;
};

struct ibv_global_route {
	union ibv_gid dgid;
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class;
};

struct ibv_ah_attr {
	struct ibv_global_route grh;
	uint16_t dlid;
	uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct ibv_pd { struct ibv_context *context; uint32_t handle; };
struct ibv_td { struct ibv_context *context; };
struct ibv_td_init_attr { uint32_t comp_mask; };
struct ibv_xrcd { struct ibv_context *context; };
struct ibv_xrcd_init_attr { uint32_t comp_mask; int fd, oflags; };
enum { IBV_XRCD_INIT_FD = 1, IBV_XRCD_INIT_OFLAGS = 2 };

struct ibv_mr {
	struct ibv_context *context;
	struct ibv_pd *pd;
	void *addr;
	size_t length;
	uint32_t handle, lkey, rkey;
};

struct ibv_mw {
	struct ibv_context *context;
	struct ibv_pd *pd;
	uint32_t rkey, handle;
	int type;
};

struct ibv_mw_bind_info {
	struct ibv_mr *mr;
	uint64_t addr, length;
	unsigned mw_access_flags;
};

struct ibv_mw_bind {
	uint64_t wr_id;
	unsigned send_flags;
	struct ibv_mw_bind_info bind_info;
};

struct ibv_ah { struct ibv_context *context; struct ibv_pd *pd; uint32_t handle; };

struct ibv_alloc_dm_attr { size_t length; uint32_t log_align_req, comp_mask; };

struct ibv_dm {
	struct ibv_context *context;
	int (*memcpy_to_dm)(struct ibv_dm *dm, uint64_t offset, const void *host, size_t length);
	int (*memcpy_from_dm)(void *host, struct ibv_dm *dm, uint64_t offset, size_t length);
	uint32_t comp_mask, handle;
};

struct ibv_sge { uint64_t addr; uint32_t length, lkey; };
struct ibv_data_buf { void *addr; size_t length; };

struct ibv_send_wr {
	uint64_t wr_id;
	struct ibv_send_wr *next;
	struct ibv_sge *sg_list;
	int num_sge, opcode;
	unsigned send_flags;
	union { be32 imm_data; uint32_t invalidate_rkey; };
	union {
		struct { uint64_t remote_addr; uint32_t rkey; } rdma;
		struct { uint64_t remote_addr, compare_add, swap; uint32_t rkey; } atomic;
		struct { struct ibv_ah *ah; uint32_t remote_qpn, remote_qkey; } ud;
	} wr;
	union { struct { uint32_t remote_srqn; } xrc; } qp_type;
	union {
		struct { struct ibv_mw *mw; uint32_t rkey; struct ibv_mw_bind_info bind_info; } bind_mw;
		struct { void *hdr; uint16_t hdr_sz, mss; } tso;
	};
};

struct ibv_recv_wr {
	uint64_t wr_id;
	struct ibv_recv_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
};
struct ibv_ops_wr;

struct ibv_srq_attr { uint32_t max_wr, max_sge, srq_limit; };
struct ibv_srq_init_attr { void *srq_context; struct ibv_srq_attr attr; };
enum { IBV_SRQ_INIT_TYPE = 1, IBV_SRQ_INIT_PD = 2, IBV_SRQ_INIT_XRCD = 4, IBV_SRQ_INIT_CQ = 8,
	IBV_SRQ_INIT_TM = 16 };

struct ibv_srq_init_attr_ex {
	void *srq_context;
	struct ibv_srq_attr attr;
	uint32_t comp_mask;
	int srq_type;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct { uint32_t max_num_tags, max_ops; } tm_cap;
};

struct ibv_srq {
	struct ibv_context *context;
	void *srq_context;
	struct ibv_pd *pd;
	uint32_t handle;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t events_completed;
};

struct ibv_qp_cap { uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data; };

struct ibv_qp_init_attr {
	void *qp_context;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp_cap cap;
	int qp_type, sq_sig_all;
};

enum {
	IBV_QP_INIT_PD = 1 << 0,
	IBV_QP_INIT_XRCD = 1 << 1,
	IBV_QP_INIT_CREATE_FLAGS = 1 << 2,
	IBV_QP_INIT_TSO = 1 << 3,
	IBV_QP_INIT_IND_TABLE = 1 << 4,
	IBV_QP_INIT_RX_HASH = 1 << 5,
	IBV_QP_INIT_SEND_OPS = 1 << 6,
	IBV_QP_CREATE_BLOCK_SELF_MCAST = 1 << 1,
};

struct ibv_qp_init_attr_ex {
	void *qp_context;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp_cap cap;
	int qp_type, sq_sig_all;
	uint32_t comp_mask;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	uint32_t create_flags;
	uint16_t max_tso_header;
	void *rwq_ind_tbl;
	struct { uint8_t function, key_len; uint8_t *key; uint64_t fields_mask; } rx_hash_conf;
	uint32_t source_qpn;
	uint64_t send_ops_flags;
};

struct ibv_qp_open_attr {
	uint32_t comp_mask, qp_num;
	struct ibv_xrcd *xrcd;
	void *qp_context;
	int qp_type;
};
enum { IBV_QP_OPEN_NUM = 1, IBV_QP_OPEN_XRCD = 2, IBV_QP_OPEN_CONTEXT = 4, IBV_QP_OPEN_TYPE = 8 };

struct ibv_qp_attr {
	int qp_state, cur_qp_state, path_mtu, path_mig_state;
	uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
	unsigned qp_access_flags;
	struct ibv_qp_cap cap;
	struct ibv_ah_attr ah_attr, alt_ah_attr;
	uint16_t pkey_index, alt_pkey_index;
	uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num;
	uint8_t timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
	uint32_t rate_limit;
};

struct ibv_qp {
	struct ibv_context *context;
	void *qp_context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	uint32_t handle, qp_num;
	int state, qp_type;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t events_completed;
};

struct ibv_qp_ex {
	struct ibv_qp qp_base;
	uint64_t comp_mask;
	uint64_t wr_id;
	unsigned wr_flags;
	void (*wr_atomic_cmp_swp)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
		uint64_t swap);
	void (*wr_atomic_fetch_add)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t add);
	void (*wr_bind_mw)(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		const struct ibv_mw_bind_info *info);
	void (*wr_local_inv)(struct ibv_qp_ex *qp, uint32_t invalidate_rkey);
	void (*wr_rdma_read)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr);
	void (*wr_rdma_write)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr);
	void (*wr_rdma_write_imm)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, be32 imm_data);
	void (*wr_send)(struct ibv_qp_ex *qp);
	void (*wr_send_imm)(struct ibv_qp_ex *qp, be32 imm_data);
	void (*wr_send_inv)(struct ibv_qp_ex *qp, uint32_t invalidate_rkey);
	void (*wr_send_tso)(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss);
	void (*wr_set_ud_addr)(struct ibv_qp_ex *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey);
	void (*wr_set_xrc_srqn)(struct ibv_qp_ex *qp, uint32_t remote_srqn);
	void (*wr_set_inline_data)(struct ibv_qp_ex *qp, void *addr, size_t length);
	void (*wr_set_inline_data_list)(struct ibv_qp_ex *qp, size_t num_buf, const struct ibv_data_buf *list);
	void (*wr_set_sge)(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length);
	void (*wr_set_sge_list)(struct ibv_qp_ex *qp, size_t num_sge, const struct ibv_sge *list);
	void (*wr_start)(struct ibv_qp_ex *qp);
	int (*wr_complete)(struct ibv_qp_ex *qp);
	void (*wr_abort)(struct ibv_qp_ex *qp);
	void (*wr_atomic_write)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, const void *value);
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t length, uint8_t type,
		uint8_t level);
};

struct ibv_ece { uint32_t vendor_id, options, comp_mask; };
struct ibv_comp_channel { struct ibv_context *context; int fd, refcnt; };

struct ibv_cq {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t comp_events_completed, async_events_completed;
};

struct ibv_poll_cq_attr { uint32_t comp_mask; };
struct ibv_wc_tm_info { uint64_t tag; uint32_t priv; };

struct ibv_cq_ex {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	void *cq_context;
	uint32_t handle;
	int cqe;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t comp_events_completed, async_events_completed;
	uint32_t comp_mask;
	int status;
	uint64_t wr_id;
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
	int (*read_opcode)(struct ibv_cq_ex *cq);
	uint32_t (*read_vendor_err)(struct ibv_cq_ex *cq);
	uint32_t (*read_byte_len)(struct ibv_cq_ex *cq);
	be32 (*read_imm_data)(struct ibv_cq_ex *cq);
	uint32_t (*read_qp_num)(struct ibv_cq_ex *cq);
	uint32_t (*read_src_qp)(struct ibv_cq_ex *cq);
	unsigned (*read_wc_flags)(struct ibv_cq_ex *cq);
	uint32_t (*read_slid)(struct ibv_cq_ex *cq);
	uint8_t (*read_sl)(struct ibv_cq_ex *cq);
	uint8_t (*read_dlid_path_bits)(struct ibv_cq_ex *cq);
	uint64_t (*read_completion_ts)(struct ibv_cq_ex *cq);
	uint16_t (*read_cvlan)(struct ibv_cq_ex *cq);
	uint32_t (*read_flow_tag)(struct ibv_cq_ex *cq);
	void (*read_tm_info)(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info);
	uint64_t (*read_completion_wallclock_ns)(struct ibv_cq_ex *cq);
};

struct ibv_moderate_cq { uint16_t cq_count, cq_period; };
struct ibv_modify_cq_attr { uint32_t attr_mask; struct ibv_moderate_cq moderate; };
enum { IBV_CQ_MODERATE = 1 };

struct ibv_cq_init_attr_ex {
	uint32_t cqe;
	void *cq_context;
	struct ibv_comp_channel *channel;
	uint32_t comp_vector;
	uint64_t wc_flags;
	uint32_t comp_mask, flags;
	struct ibv_pd *parent_domain;
};
enum { IBV_CQ_INIT_FLAGS = 1, IBV_CQ_INIT_PD = 2 };

struct ibv_parent_domain_init_attr {
	struct ibv_pd *pd;
	struct ibv_td *td;
	uint32_t comp_mask;
	void *(*alloc)(struct ibv_pd *pd, void *context, size_t size, size_t alignment, uint64_t type);
	void (*free)(struct ibv_pd *pd, void *context, void *ptr, uint64_t type);
	void *pd_context;
};

struct ibv_counters_init_attr { uint32_t comp_mask; };
struct ibv_counters { struct ibv_context *context; };
struct ibv_counter_attach_attr { int counter_desc; uint32_t index, comp_mask; };
struct ibv_values_ex { uint32_t comp_mask; struct timespec raw_clock; };
enum { IBV_VALUES_RAW_CLOCK = 1 };

struct ibv_device {
	void *_ops[2];
	int node_type, transport_type;
	char name[IBV_NAME_MAX], dev_name[IBV_NAME_MAX], dev_path[IBV_PATH_MAX], ibdev_path[IBV_PATH_MAX];
};

struct ibv_context_ops {
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	void *old1[5];
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, int type);
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
	int (*dealloc_mw)(struct ibv_mw *mw);
	void *old2;
	int (*poll_cq)(struct ibv_cq *cq, int most, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
	void *old3[7];
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	void *old4[4];
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	void *old5[5];
};

struct ibv_context {
	struct ibv_device *device;
	struct ibv_context_ops ops;
	int cmd_fd, async_fd, num_comp_vectors;
	pthread_mutex_t mutex;
	void *abi_compat;
};

/* It grows at its front: fields are found by their distance from the end. */
struct verbs_context {
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);
	int (*advise_mr)(struct ibv_pd *pd, int advice, uint32_t flags, struct ibv_sge *list, uint32_t count);
	struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *pd);
	int (*read_counters)(struct ibv_counters *counters, uint64_t *values, uint32_t count, uint32_t flags);
	int (*attach_counters_point_flow)(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
		struct ibv_flow *flow);
	struct ibv_counters *(*create_counters)(struct ibv_context *context, struct ibv_counters_init_attr *attr);
	int (*destroy_counters)(struct ibv_counters *counters);
	struct ibv_mr *(*reg_dm_mr)(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
		unsigned access);
	struct ibv_dm *(*alloc_dm)(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
	int (*free_dm)(struct ibv_dm *dm);
	int (*modify_flow_action_esp)(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *attr);
	int (*destroy_flow_action)(struct ibv_flow_action *action);
	struct ibv_flow_action *(*create_flow_action_esp)(struct ibv_context *context,
		struct ibv_flow_action_esp_attr *attr);
	int (*modify_qp_rate_limit)(struct ibv_qp *qp, void *attr);
	struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
	int (*dealloc_td)(struct ibv_td *td);
	struct ibv_td *(*alloc_td)(struct ibv_context *context, struct ibv_td_init_attr *attr);
	int (*modify_cq)(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
	int (*post_srq_ops)(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad);
	int (*destroy_rwq_ind_table)(void *table);
	void *(*create_rwq_ind_table)(struct ibv_context *context, void *attr);
	int (*destroy_wq)(void *wq);
	int (*modify_wq)(void *wq, void *attr);
	void *(*create_wq)(struct ibv_context *context, void *attr);
	int (*query_rt_values)(struct ibv_context *context, struct ibv_values_ex *values);
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
	void *priv;
	int (*query_device_ex)(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		struct ibv_device_attr_ex *attr, size_t size);
	int (*ibv_destroy_flow)(struct ibv_flow *flow);
	void (*placeholder2)(void);
	struct ibv_flow *(*ibv_create_flow)(struct ibv_qp *qp, struct ibv_flow_attr *attr);
	void (*placeholder1)(void);
	struct ibv_qp *(*open_qp)(struct ibv_context *context, struct ibv_qp_open_attr *attr);
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
	int (*get_srq_num)(struct ibv_srq *srq, uint32_t *number);
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
	struct ibv_xrcd *(*open_xrcd)(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
	int (*close_xrcd)(struct ibv_xrcd *xrcd);
	uint64_t placeholder3;
	size_t sz;
	struct ibv_context context;
};

#endif
