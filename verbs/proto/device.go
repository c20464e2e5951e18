// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// The commands on the device and its port.
var (
	QueryDevice   = of(provider.QueryDevice, none, visitDevice)
	QueryPort     = of(provider.QueryPort, visitQueryPort, visitPort)
	QueryGIDTable = of(provider.QueryGIDTable, visitQueryGIDTable, visitGIDTable)
	QueryPKey     = of(provider.QueryPKey, visitQueryPKey, visitPKey)
	Counters      = command(20, "counters", none, visitCounters)
	GetAsyncEvent = command(21, "get_async_event", none, visitEvent)
	QueryRTValues = of(provider.QueryRTValues, none, visitRTValues)

	// OpenAsyncEvents has a reply with a descriptor: a stream socket's end, from which the client reads events as the grants
	// of GetAsyncEvent, 16 bytes each, and the end when the session has ended. From then on the events of objects whose
	// EventIDs are in a range go there, and each of the device and its port to every such descriptor.
	OpenAsyncEvents  = command(24, "open_async_events", visitEventRange, none)
	CloseAsyncEvents = command(25, "close_async_events", visitEventRange, none)

	// OpenEveryAsyncEvent is OpenAsyncEvents for all EventIDs, for older clients.
	OpenEveryAsyncEvent = command(23, "open_every_async_event", none, none)
)

// The maximum entries of lists; a longer GID table is cut.
const (
	MaxGIDs     = 256
	maxCounters = 160
)

func visitDevice(c *coder, a *verbs.DeviceAttr) {
	c.text("name", nameLen, &a.Name)
	c.clipped("firmware_version", 64, &a.FirmwareVersion)
	u64(c, "node_guid", &a.NodeGUID)
	c.whole("max_qp", &a.MaxQP)
	c.whole("max_qp_wr", &a.MaxQPWR)
	c.whole("max_sge", &a.MaxSGE)
	c.whole("max_inline", &a.MaxInline)
	c.whole("max_srq", &a.MaxSRQ)
	c.whole("max_srq_wr", &a.MaxSRQWR)
	c.whole("max_srq_sge", &a.MaxSRQSGE)
	c.whole("max_cq", &a.MaxCQ)
	c.whole("max_cqe", &a.MaxCQE)
	c.whole("max_mr", &a.MaxMR)
	u64(c, "max_mr_size", &a.MaxMRSize)
	c.whole("max_pd", &a.MaxPD)
	c.whole("max_ah", &a.MaxAH)
	c.whole("max_pkeys", &a.MaxPKeys)
	c.whole("max_mcast_grp", &a.MaxMcastGrp)
	c.whole("max_mcast_qp_attach", &a.MaxMcastQPAttach)
	c.whole("max_total_mcast_qp_attach", &a.MaxTotalMcastQPAttach)
	c.whole("phys_port_cnt", &a.PhysicalPorts)
	c.clipped("xdp_mode", 16, &a.XDPMode)
	c.clipped("af_xdp_mode", 16, &a.AFXDPMode)
	c.clipped("send_mode", 16, &a.SendMode)
	c.clipped("send_reason", 256, &a.SendReason)
	u64(c, "sys_image_guid", &a.SysImageGUID)
	u32(c, "vendor_id", &a.VendorID)
	u32(c, "vendor_part_id", &a.VendorPartID)
	u32(c, "hw_ver", &a.HWVer)
	u32(c, "device_cap_flags", &a.CapFlags)
	u64(c, "page_size_cap", &a.PageSizeCap)
	u64(c, "completion_timestamp_mask", &a.CompletionTimestampMask)
	u64(c, "hca_core_clock", &a.HCACoreClock)
	u16(c, "max_cq_count", &a.MaxCQCount)
	u16(c, "max_cq_period", &a.MaxCQPeriod)
	u8(c, "atomic_cap", &a.AtomicCap)
	u8(c, "workers", &a.Workers)
	c.reserved(2)
	c.whole("max_mw", &a.MaxMW)
	c.whole("max_qp_rd_atom", &a.MaxQPRDAtom)
	c.whole("max_qp_init_rd_atom", &a.MaxQPInitRDAtom)
	c.whole("max_res_rd_atom", &a.MaxResRDAtom)
	c.whole("max_fast_reg_page_list_len", &a.MaxFastRegPageListLen)
}

func visitRTValues(c *coder, v *verbs.RTValues) { u64(c, "raw_clock", &v.RawClock) }

// visitPortNumber visits a port's number, the only field of a request.
func visitPortNumber(c *coder, port *uint8) {
	u8(c, "port", port)
	c.reserved(7)
}

func visitQueryPort(c *coder, r *provider.QueryPortRequest) { visitPortNumber(c, &r.Port) }

func visitPort(c *coder, a *verbs.PortAttr) {
	u8(c, "state", &a.State)
	u8(c, "max_mtu", &a.MaxMTU)
	u8(c, "active_mtu", &a.ActiveMTU)
	c.reserved(1)
	u32(c, "max_msg_size", &a.MaxMsgSize)
	u64(c, "qkey_violations", &a.QKeyViolations)
	c.whole("gid_table_length", &a.GIDTableLen)
	c.whole("pkey_table_length", &a.PKeyTableLen)
	c.whole("interface_mtu", &a.InterfaceMTU)
	c.whole("interface_speed", &a.InterfaceSpeed)
	u64(c, "bad_pkey_cntr", &a.PKeyViolations)
	u32(c, "port_cap_flags", &a.CapFlags)
	u8(c, "phys_state", &a.PhysState)
	u8(c, "link_layer", &a.LinkLayer)
	u8(c, "active_width", &a.ActiveWidth)
	u8(c, "active_speed", &a.ActiveSpeed)
	u8(c, "max_vl_num", &a.MaxVLNum)
	u8(c, "lmc", &a.LMC)
	u8(c, "sm_sl", &a.SMSL)
	u8(c, "subnet_timeout", &a.SubnetTimeout)
	u8(c, "init_type_reply", &a.InitTypeReply)
	c.reserved(3)
	u16(c, "lid", &a.LID)
	u16(c, "sm_lid", &a.SMLID)
	c.reserved(4)
}

func visitQueryGIDTable(c *coder, r *provider.QueryGIDTableRequest) { visitPortNumber(c, &r.Port) }

func visitGIDTable(c *coder, g *provider.QueryGIDTableGrant) {
	c.whole("table_length", &g.Length)
	list(c, "gids", MaxGIDs, &g.Entries, visitGID)
}

func visitGID(c *coder, e *verbs.GIDEntry) {
	c.raw("gid", e.GID[:])
	c.whole("index", &e.Index)
	c.text("interface", 16, &e.Interface)
	u32(c, "ifindex", &e.IfIndex)
	u8(c, "type", &e.Type)
	u8(c, "port", &e.Port)
	c.reserved(2)
}

func visitQueryPKey(c *coder, r *provider.QueryPKeyRequest) {
	visitPortNumber(c, &r.Port)
	c.whole("index", &r.Index)
}

func visitPKey(c *coder, g *provider.QueryPKeyGrant) {
	u16(c, "pkey", &g.PKey)
	c.reserved(6)
}

func visitCounters(c *coder, all *[]verbs.Counter) {
	list(c, "counters", maxCounters, all, visitCounter)
}

func visitCounter(c *coder, v *verbs.Counter) {
	c.text("place", 16, &v.Place)
	c.text("name", 40, &v.Name)
	u64(c, "value", &v.Value)
	c.flag("lost", &v.Lost)
	c.reserved(7)
}

// EventRange is an inclusive range of EventIDs; First is not 0.
type EventRange struct{ First, Last uint64 }

func visitEventRange(c *coder, r *EventRange) {
	u64(c, "first", &r.First)
	u64(c, "last", &r.Last)
}

func visitEvent(c *coder, e *provider.EventReport) {
	u8(c, "type", &e.Type)
	u8(c, "port", &e.Port)
	c.reserved(6)
	u64(c, "event_id", &e.EventID)
}

// EncodeAsyncEvent returns the record of an event (OpenAsyncEvents).
func EncodeAsyncEvent(e provider.EventReport) []byte {
	c := coder{direction: encoding, buffer: make([]byte, 0, 16)}
	visitEvent(&c, &e)
	return c.buffer
}
