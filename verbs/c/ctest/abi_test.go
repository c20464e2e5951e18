// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// structures are libibverbs', each with its fields.
var structures = map[string]string{
	"union ibv_gid":        "raw global.subnet_prefix global.interface_id",
	"struct ibv_gid_entry": "gid gid_index port_num gid_type ndev_ifindex",
	"struct ibv_device_attr": "fw_ver node_guid sys_image_guid max_mr_size page_size_cap vendor_id vendor_part_id hw_ver max_qp max_qp_wr " +
		"device_cap_flags max_sge max_sge_rd max_cq max_cqe max_mr max_pd max_qp_rd_atom max_ee_rd_atom max_res_rd_atom " +
		"max_qp_init_rd_atom max_ee_init_rd_atom atomic_cap max_ee max_rdd max_mw max_raw_ipv6_qp max_raw_ethy_qp max_mcast_grp " +
		"max_mcast_qp_attach max_total_mcast_qp_attach max_ah max_fmr max_map_per_fmr max_srq max_srq_wr max_srq_sge max_pkeys " +
		"local_ca_ack_delay phys_port_cnt",
	"struct ibv_odp_caps": "general_caps per_transport_caps.rc_odp_caps per_transport_caps.uc_odp_caps per_transport_caps.ud_odp_caps",
	"struct ibv_device_attr_ex": "orig_attr comp_mask odp_caps completion_timestamp_mask hca_core_clock device_cap_flags_ex tso_caps " +
		"rss_caps max_wq_type_rq packet_pacing_caps raw_packet_caps tm_caps cq_mod_caps max_dm_size pci_atomic_caps xrc_odp_caps phys_port_cnt_ex",
	"struct ibv_async_event": "element.cq element.port_num event_type",
	"struct ibv_wc": "wr_id status opcode vendor_err byte_len imm_data invalidated_rkey qp_num src_qp wc_flags pkey_index slid sl " +
		"dlid_path_bits",
	"struct ibv_grh":            "version_tclass_flow paylen next_hdr hop_limit sgid dgid",
	"struct ibv_global_route":   "dgid flow_label sgid_index hop_limit traffic_class",
	"struct ibv_ah_attr":        "grh dlid sl src_path_bits static_rate is_global port_num",
	"struct ibv_pd":             "context handle",
	"struct ibv_td":             "context",
	"struct ibv_xrcd":           "context",
	"struct ibv_xrcd_init_attr": "comp_mask fd oflags",
	"struct ibv_mr":             "context pd addr length handle lkey rkey",
	"struct ibv_mw":             "context pd rkey handle type",
	"struct ibv_mw_bind_info":   "mr addr length mw_access_flags",
	"struct ibv_mw_bind":        "wr_id send_flags bind_info",
	"struct ibv_ah":             "context pd handle",
	"struct ibv_alloc_dm_attr":  "length log_align_req comp_mask",
	"struct ibv_dm":             "context memcpy_to_dm memcpy_from_dm comp_mask handle",
	"struct ibv_sge":            "addr length lkey",
	"struct ibv_data_buf":       "addr length",
	"struct ibv_send_wr": "wr_id next sg_list num_sge opcode send_flags imm_data invalidate_rkey wr.rdma.remote_addr wr.rdma.rkey " +
		"wr.atomic.compare_add wr.atomic.swap wr.atomic.rkey wr.ud.ah wr.ud.remote_qpn wr.ud.remote_qkey qp_type.xrc.remote_srqn " +
		"bind_mw.mw bind_mw.rkey bind_mw.bind_info tso.hdr tso.hdr_sz tso.mss",
	"struct ibv_recv_wr":          "wr_id next sg_list num_sge",
	"struct ibv_srq_attr":         "max_wr max_sge srq_limit",
	"struct ibv_srq_init_attr":    "srq_context attr",
	"struct ibv_srq_init_attr_ex": "srq_context attr comp_mask srq_type pd xrcd cq tm_cap",
	"struct ibv_srq":              "context srq_context pd handle mutex cond events_completed",
	"struct ibv_qp_cap":           "max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data",
	"struct ibv_qp_init_attr":     "qp_context send_cq recv_cq srq cap qp_type sq_sig_all",
	"struct ibv_qp_init_attr_ex": "qp_context send_cq recv_cq srq cap qp_type sq_sig_all comp_mask pd xrcd create_flags max_tso_header " +
		"rwq_ind_tbl rx_hash_conf source_qpn send_ops_flags",
	"struct ibv_qp_open_attr": "comp_mask qp_num xrcd qp_context qp_type",
	"struct ibv_qp_attr": "qp_state cur_qp_state path_mtu path_mig_state qkey rq_psn sq_psn dest_qp_num qp_access_flags cap ah_attr " +
		"alt_ah_attr pkey_index alt_pkey_index en_sqd_async_notify sq_draining max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num " +
		"timeout retry_cnt rnr_retry alt_port_num alt_timeout rate_limit",
	"struct ibv_qp":           "context qp_context pd send_cq recv_cq srq handle qp_num state qp_type mutex cond events_completed",
	"struct ibv_ece":          "vendor_id options comp_mask",
	"struct ibv_comp_channel": "context fd refcnt",
	"struct ibv_cq":           "context channel cq_context handle cqe mutex cond comp_events_completed async_events_completed",
	"struct ibv_wc_tm_info":   "tag priv",
	"struct ibv_cq_ex": "context channel cq_context handle cqe mutex cond comp_events_completed async_events_completed comp_mask status " +
		"wr_id start_poll next_poll end_poll read_opcode read_vendor_err read_byte_len read_imm_data read_qp_num read_src_qp " +
		"read_wc_flags read_slid read_sl read_dlid_path_bits read_completion_ts read_cvlan read_flow_tag read_tm_info " +
		"read_completion_wallclock_ns",
	"struct ibv_modify_cq_attr":          "attr_mask moderate.cq_count moderate.cq_period",
	"struct ibv_cq_init_attr_ex":         "cqe cq_context channel comp_vector wc_flags comp_mask flags parent_domain",
	"struct ibv_parent_domain_init_attr": "pd td comp_mask alloc free pd_context",
	"struct ibv_counter_attach_attr":     "counter_desc index comp_mask",
	"struct ibv_values_ex":               "comp_mask raw_clock",
	"struct ibv_device":                  "_ops node_type transport_type name dev_name dev_path ibdev_path",
	"struct ibv_context_ops":             "alloc_mw bind_mw dealloc_mw poll_cq req_notify_cq post_srq_recv post_send post_recv",
	"struct ibv_context":                 "device ops cmd_fd async_fd num_comp_vectors mutex abi_compat",
	"struct verbs_context": "query_port advise_mr alloc_null_mr read_counters attach_counters_point_flow create_counters destroy_counters " +
		"reg_dm_mr alloc_dm free_dm modify_flow_action_esp destroy_flow_action create_flow_action_esp modify_qp_rate_limit " +
		"alloc_parent_domain dealloc_td alloc_td modify_cq post_srq_ops destroy_rwq_ind_table create_rwq_ind_table destroy_wq modify_wq " +
		"create_wq query_rt_values create_cq_ex priv query_device_ex ibv_destroy_flow ibv_create_flow open_qp create_qp_ex get_srq_num " +
		"create_srq_ex open_xrcd close_xrcd sz context",
}

// grown are structures that later libraries have made longer: Debian 12's fields are at the same places.
var grown = map[string]string{
	"struct ibv_port_attr": "state max_mtu active_mtu gid_tbl_len port_cap_flags max_msg_sz bad_pkey_cntr qkey_viol_cntr pkey_tbl_len " +
		"lid sm_lid lmc max_vl_num sm_sl subnet_timeout init_type_reply active_width active_speed phys_state link_layer flags port_cap_flags2",
	"struct ibv_qp_ex": "qp_base comp_mask wr_id wr_flags wr_atomic_cmp_swp wr_atomic_fetch_add wr_bind_mw wr_local_inv wr_rdma_read " +
		"wr_rdma_write wr_rdma_write_imm wr_send wr_send_imm wr_send_inv wr_send_tso wr_set_ud_addr wr_set_xrc_srqn wr_set_inline_data " +
		"wr_set_inline_data_list wr_set_sge wr_set_sge_list wr_start wr_complete wr_abort wr_atomic_write",
}

// numbers are libibverbs' names of numbers, and ours.
var numbers = map[string]string{
	"IBV_NODE_CA": "IBV_NODE_CA", "IBV_TRANSPORT_IB": "IBV_TRANSPORT_IB", "IBV_QPF_GRH_REQUIRED": "IBV_QPF_GRH_REQUIRED",
	"IBV_WC_EX_WITH_COMPLETION_TIMESTAMP": "IBV_WC_EX_TIMESTAMP", "IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK": "IBV_WC_EX_WALLCLOCK",
	"IBV_WC_EX_WITH_CVLAN": "IBV_WC_EX_CVLAN", "IBV_QP_INIT_ATTR_PD": "IBV_QP_INIT_PD", "IBV_QP_INIT_ATTR_XRCD": "IBV_QP_INIT_XRCD",
	"IBV_QP_INIT_ATTR_CREATE_FLAGS": "IBV_QP_INIT_CREATE_FLAGS", "IBV_QP_INIT_ATTR_SEND_OPS_FLAGS": "IBV_QP_INIT_SEND_OPS",
	"IBV_QP_CREATE_BLOCK_SELF_MCAST_LB": "IBV_QP_CREATE_BLOCK_SELF_MCAST", "IBV_SRQ_INIT_ATTR_TYPE": "IBV_SRQ_INIT_TYPE",
	"IBV_SRQ_INIT_ATTR_XRCD": "IBV_SRQ_INIT_XRCD", "IBV_SRQ_INIT_ATTR_CQ": "IBV_SRQ_INIT_CQ", "IBV_SRQ_INIT_ATTR_PD": "IBV_SRQ_INIT_PD",
	"IBV_XRCD_INIT_ATTR_FD": "IBV_XRCD_INIT_FD", "IBV_XRCD_INIT_ATTR_OFLAGS": "IBV_XRCD_INIT_OFLAGS", "IBV_QP_OPEN_ATTR_NUM": "IBV_QP_OPEN_NUM",
	"IBV_QP_OPEN_ATTR_XRCD": "IBV_QP_OPEN_XRCD", "IBV_QP_OPEN_ATTR_CONTEXT": "IBV_QP_OPEN_CONTEXT", "IBV_QP_OPEN_ATTR_TYPE": "IBV_QP_OPEN_TYPE",
	"IBV_CQ_INIT_ATTR_MASK_FLAGS": "IBV_CQ_INIT_FLAGS", "IBV_CQ_INIT_ATTR_MASK_PD": "IBV_CQ_INIT_PD", "IBV_CQ_ATTR_MODERATE": "IBV_CQ_MODERATE",
	"IBV_VALUES_MASK_RAW_CLOCK": "IBV_VALUES_RAW_CLOCK", "IBV_WR_SEND_WITH_INV": "ROCED_WR_SEND_WITH_INV", "IBV_SEND_INLINE": "ROCED_SEND_INLINE",
	"IBV_WC_WITH_INV": "ROCED_WC_WITH_INV", "IBV_WC_RECV_RDMA_WITH_IMM": "ROCED_WC_RECV_RDMA_WITH_IMM", "IBV_QPT_XRC_RECV": "ROCED_QPT_XRC_RECV",
	"IBV_QP_DEST_QPN": "ROCED_QP_DEST_QPN", "IBV_QPS_ERR": "ROCED_QPS_ERR", "IBV_EVENT_GID_CHANGE": "ROCED_EVENT_GID_CHANGE",
	"IBV_WC_TM_RNDV_INCOMPLETE": "ROCED_WC_TM_RNDV_INCOMPLETE", "IBV_ACCESS_RELAXED_ORDERING": "ROCED_ACCESS_RELAXED_ORDERING",
	"IBV_GID_TYPE_ROCE_V2": "ROCED_GID_TYPE_ROCE_V2", "IBV_REREG_MR_CHANGE_ACCESS": "ROCED_REREG_MR_CHANGE_ACCESS",
}

// TestABI: the structures and numbers are those of Debian's header.
func TestABI(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "/usr/include/infiniband/verbs.h")
	ours, err := filepath.Abs("../abi.h")
	if err != nil {
		t.Fatal(err)
	}
	want := layout(t, "<infiniband/verbs.h>", func(theirs, _ string) string { return theirs })
	have := layout(t, fmt.Sprintf("%q", ours), func(_, ours string) string { return ours })
	for i, line := range want {
		if have[i] != line {
			t.Errorf("Debian's header has %s, abi.h %s", line, have[i])
		}
	}
}

// layout returns the sizes, offsets and numbers of a header, as printed by a program.
func layout(t *testing.T, header string, choose func(theirs, ours string) string) []string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "#include <stddef.h>\n#include <stdio.h>\n#include %s\nint main(void)\n{\n", header)
	for name, fields := range structures {
		fmt.Fprintf(&b, "printf(\"%s: %%zu\\n\", sizeof(%s));\n", name, name)
		printFields(&b, name, fields)
	}
	for name, fields := range grown {
		printFields(&b, name, fields)
	}
	for theirs, ours := range numbers {
		fmt.Fprintf(&b, "printf(\"%s: %%lld\\n\", (long long)%s);\n", theirs, choose(theirs, ours))
	}
	b.WriteString("return 0;\n}\n")
	source := filepath.Join(t.TempDir(), "layout.c")
	if err := os.WriteFile(source, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := made("gcc", "-std=gnu11", "-o", source+".out", source); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(printed(t, source+".out"), "\n")
	slices.Sort(lines)
	return lines
}

func printFields(b *strings.Builder, name, fields string) {
	for _, f := range strings.Fields(fields) {
		fmt.Fprintf(b, "printf(\"%s.%s: %%zu, %%zu bytes\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", name, f, name, f, name, f)
	}
}
