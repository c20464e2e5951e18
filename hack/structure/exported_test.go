// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// public packages are those that other modules may import.
var public = []string{
	"bpf", "datapath", "datapath/link", "datapath/ring", "datapath/wire", "datapath/xsk",
	"verbs/ib", "mcast", "mcast/membership", "verbs", "verbs/client", "verbs/compat", "verbs/hca", "verbs/hca/memnet", "verbs/kernel", "verbs/netdev", "verbs/provider", "verbs/rc", "verbs/ud", "verbs/verbstest",
}

// byOthers lists the reasons for exported names that are unused outside of their package. A name
// with a star stands for several, and a question mark for one character.
var byOthers = map[string]string{
	// The specifications' names.
	"verbs/ib.*":                 "libibverbs' and ib_verbs.h's values and attributes",
	"verbs/kernel.*":             "ib_verbs.h's names",
	"verbs/kernel.*.*":           "ib_verbs.h's objects",
	"verbs/compat.*":             "libibverbs' names",
	"verbs.Access*":              "ibv_access_flags",
	"verbs.Port*":                "ibv_port_state",
	"verbs.QPType*":              "ibv_qp_type, ib_qp_type",
	"verbs.Event*":               "ibv_event_type",
	"verbs.Network*":             "rdma_network_type",
	"verbs.QPAttr*":              "ibv_qp_attr_mask",
	"verbs.SRQ*":                 "ibv_srq_attr_mask",
	"verbs.Send*":                "ibv_send_flags",
	"verbs.WC*":                  "ibv_wc_status, ibv_wc_opcode, ibv_wc_flags",
	"verbs.WR*":                  "ibv_wr_opcode",
	"verbs.PD.RegMR*":            "ibv_reg_mr, ibv_reg_mr_iova",
	"verbs.PD.AllocMRIOVA":       "ibv_reg_mr_iova, of the card's memory",
	"verbs.MR.Rereg":             "ibv_rereg_mr",
	"verbs.QP.BindMW":            "ibv_bind_mw",
	"verbs.MW*":                  "ibv_mw, ibv_mw_type",
	"verbs.WC.InvalidatedRKey":   "ibv_wc.invalidated_rkey",
	"verbs.Rereg*":               "ibv_rereg_mr_flags",
	"verbs.CQ.Capacity":          "ibv_cq.cqe",
	"verbs.Context.NumComp*":     "ibv_context.num_comp_vectors",
	"verbs/hca.*Devices":         "ibv_get_device_list, ib_register_client, of the host's interfaces",
	"verbs/client.ListDevices":   "ibv_get_device_list",
	"verbs.DM.Copy*":             "ibv_memcpy_to_dm, ibv_memcpy_from_dm",
	"verbs.Counters.AttachQP":    "ibv_attach_counters_point_flow",
	"verbs.Counters.AttachCQ":    "ibv_comp_cntr",
	"verbs.CounterCompletions":   "ibv_comp_cntr",
	"verbs.CounterErrors":        "ibv_comp_cntr",
	"verbs.CounterBytes":         "ibv_counter_description",
	"verbs.CounterDescription":   "ibv_counter_description",
	"verbs.CounterPackets":       "ibv_counter_description",
	"verbs.CounterSent*":         "ibv_counter_description, of what is sent",
	"verbs.Context.AllocTD":      "ibv_alloc_td",
	"verbs.PD.AllocParentDomain": "ibv_alloc_parent_domain",
	"verbs.QP.QPContext":         "ibv_qp.qp_context",
	"verbs.SRQ.SRQContext":       "ibv_srq.srq_context",
	"verbs.Context.InitAHFromWC": "ibv_init_ah_from_wc",
	"datapath/wire.BTH.*":        "IBTA volume 1, 9.2",
	"datapath/wire.*Len":         "lengths of the headers",
	"datapath/wire.EtherType*":   "IEEE 802",
	"datapath/wire.IPv?":         "an IP header, as the other headers are views",
	"datapath/wire.FlowLabel":    "what the UDP source port follows from, in IPv4 too",
	"datapath/wire.SourcePort":   "the UDP source port that follows from a flow label",
	"datapath/wire.MAD.*":        "messages of connection management: IBTA volume 1, 12.6",
	"datapath/wire.LAP":          "IBTA volume 1, 12.8.1",
	"datapath/wire.Packet.ICRC":  "what the packet says; IBTA volume 1, 7.8.1",
	"mcast.Table.Find":           "rvt_mcast_find",
	"mcast.TreeEmpty":            "rvt_mcast_tree_empty",
	"verbs.CQIgnore*":            "ibv_create_cq_attr_flags",
	"verbs.CQNotifyFlags":        "ib_cq_notify_flags",
	"verbs.CQSolicited":          "ib_cq_notify_flags",
	"verbs.CQReport*":            "ib_cq_notify_flags",

	"verbs/netdev.Device.AttachMcast": "rdma_netdev's attach_mcast",
	"verbs/netdev.Device.DetachMcast": "rdma_netdev's detach_mcast",
	"verbs/netdev.Device.Send":        "rdma_netdev's send",

	// Which failure it was, by errors.Is.
	"bpf.Err*":              "sentinel errors",
	"datapath/ring.Err*":    "sentinel errors",
	"datapath/xsk.Err*":     "sentinel errors",
	"mcast.Err*":            "sentinel errors",
	"mcast/membership.Err*": "sentinel errors",
	"verbs/rc.Err*":         "sentinel errors",
	"verbs/ud.Err*":         "sentinel errors",

	// What a program may want, and ours do not.
	"verbs/ud.Endpoint.LocalAddrs": "all addresses of an endpoint, to be handed to peers",
	"verbs/rc.Dial":                "by host name, over the card whose route leads there",

	// What another Provider needs, in Go or in another language.
	"verbs/verbstest.*":     "what a test of a Provider calls",
	"datapath/ring.Entries": "how many entries a queue gets that are asked for",
	"datapath/ring.Max*":    "limits of the layout",

	// What tests of the packages above look at.
	"datapath.Counters.Dropped": "the sum of drops",
	"datapath.Drop.Unsent":      "which drops are of sends",
	"datapath.HandlePlaces":     "the limit that the tables of verbs/hca/handles keep to",
}

// TestExportedNamesHaveCallers: a name is exported for somebody: another package's code that is
// not a test, an Example, or another such name that shows it, as a result's type. Fields go
// with their types. Methods are told apart by their names alone.
func TestExportedNamesHaveCallers(t *testing.T) {
	files := sources(t)
	callers := findCallers(files)
	for _, folder := range public {
		s := surfaceOf(files, folder)
		alive := s.alive(func(name string) bool { return callers.calls(folder, name) || reason(folder, name) != "" })
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if !alive[name] {
				t.Errorf("%s: %s is unused outside of its package: unexport or delete it, or add its users to byOthers", folder, name)
			}
		}
	}
}

// TestReasonsAreNeeded: byOthers lists only existing names that are unused here.
func TestReasonsAreNeeded(t *testing.T) {
	files := sources(t)
	callers := findCallers(files)
	needed := map[string]bool{}
	for _, folder := range public {
		for name := range surfaceOf(files, folder) {
			if !callers.calls(folder, name) {
				needed[reason(folder, name)] = true
			}
		}
	}
	for name := range byOthers {
		if !needed[name] {
			t.Errorf("%s needs no reason", name)
		}
	}
}

// reason is the line of byOthers that a name is in, empty if none.
func reason(folder, name string) string {
	for line := range byOthers {
		of, pattern, _ := strings.Cut(line, ".")
		matched, err := path.Match(pattern, name)
		if of == folder && matched && err == nil && isMethod(pattern) == isMethod(name) {
			return line
		}
	}
	return ""
}

func isMethod(name string) bool { return strings.Contains(name, ".") }
