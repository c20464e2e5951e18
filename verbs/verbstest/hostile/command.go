// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"math"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var Tests = []rig.Test{
	{Name: "commands refuse handles", Run: refuseHandles},
	{Name: "commands refuse arguments", Run: refuseArguments},
	{Name: "scribbled queues", Run: scribbledQueues},
	{Name: "lists of fast regions", Run: fastLists},
	{Name: "mapped memory of others", Run: othersMemory},
}

// A command is sent directly to the card's side, bypassing the checks of package verbs.
type command struct {
	name string
	ask  func() error
}

// refuseAll executes commands that must be rejected. The provider of the tests checks that the error is one of verbs.
func refuseAll(t *testing.T, w *rig.World, commands []command) {
	t.Helper()
	for _, c := range commands {
		if err := c.ask(); err == nil {
			t.Errorf("%s is not rejected", c.name)
		}
	}
	w.Alive()
}

// Every command rejects invalid numbers, masks and lengths.
func refuseArguments(t *testing.T, w *rig.World) {
	device, err := w.A.Ctx.QueryDevice()
	rig.Check(t, err)
	h := NewHandles(w.A, w.A.Session, 0)
	refuseAll(t, w, queryCommands(w.A.Session))
	refuseAll(t, w, sizeCommands(w.A.Session, h, device))
	refuseAll(t, w, queuePairCommands(w.A.Session, h, device))
	refuseAll(t, w, modifyCommands(w.A.Session, h))
	refuseAll(t, w, srqCommands(w.A.Session, h, device))
	refuseAll(t, w, addressCommands(w.A, h))
	h.free(t, w.A.Session)
}

func queryCommands(p provider.Provider) (all []command) {
	for _, port := range []uint8{0, 2, 255} {
		all = append(all,
			command{fmt.Sprint("QueryPort ", port), func() error {
				_, err := provider.Do(p, provider.QueryPort, provider.QueryPortRequest{Port: port})
				return err
			}},
			command{fmt.Sprint("QueryGIDTable ", port), func() error {
				_, err := provider.Do(p, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: port})
				return err
			}},
			command{fmt.Sprint("QueryPKey of port ", port), func() error {
				_, err := provider.Do(p, provider.QueryPKey, provider.QueryPKeyRequest{Port: port})
				return err
			}},
		)
	}
	for _, index := range []int{-1, 1, math.MaxInt, math.MinInt} {
		all = append(all, command{fmt.Sprint("QueryPKey ", index), func() error {
			_, err := provider.Do(p, provider.QueryPKey, provider.QueryPKeyRequest{Port: 1, Index: index})
			return err
		}})
	}
	return append(all, command{"Claim", p.Claim})
}

// sizeCommands returns commands with invalid lengths, sizes and access flags.
func sizeCommands(p provider.Provider, h handles, device verbs.DeviceAttr) (all []command) {
	for _, n := range []int{-1, math.MinInt, math.MaxInt, math.MaxInt - 4096, math.MaxUint32 + 1, int(device.MaxMRSize) + 1} {
		all = append(all, command{fmt.Sprint("AllocMR of ", n), func() error {
			_, err := provider.Do(p, provider.AllocMR, provider.AllocMRRequest{PD: h.PD, Length: n})
			return err
		}})
	}
	for _, n := range []int{0, -1, math.MinInt, math.MaxInt, math.MaxUint32 + 1, device.MaxFastRegPageListLen + 1} {
		all = append(all, command{fmt.Sprint("AllocFastMR of ", n), func() error {
			_, err := provider.Do(p, provider.AllocFastMR, provider.AllocFastMRRequest{PD: h.PD, Entries: n})
			return err
		}})
	}
	for _, n := range []int{0, -1, math.MinInt, math.MaxInt, int(device.MaxMRSize) + 1} {
		all = append(all, command{fmt.Sprint("AllocCoherent of ", n), func() error {
			_, err := provider.Do(p, provider.AllocCoherent, provider.AllocCoherentRequest{Length: n})
			return err
		}})
	}
	for _, n := range []int{0, -1, math.MinInt, math.MaxInt, math.MaxUint32 + 2, 1<<31 + 1, device.MaxCQE + 1} {
		all = append(all, command{fmt.Sprint("CreateCQ of ", n), func() error {
			_, err := provider.Do(p, provider.CreateCQ, provider.CreateCQRequest{Entries: n})
			return err
		}}, command{fmt.Sprint("ResizeCQ to ", n), func() error {
			_, err := provider.Do(p, provider.ResizeCQ, provider.ResizeCQRequest{CQ: h.CQ, Entries: n})
			return err
		}})
	}
	for name, r := range map[string]provider.CreateCQRequest{
		"no such channel":  {Entries: 1, Channel: h.channel + 1},
		"vector 8":         {Entries: 1, CompVector: provider.CompVectors},
		"vector min":       {Entries: 1, CompVector: math.MinInt},
		"all of WCFlags":   {Entries: 1, WCFlags: math.MaxUint64},
		"all of the flags": {Entries: 1, Flags: math.MaxUint32},
	} {
		all = append(all, command{"CreateCQ, " + name, func() error { _, err := provider.Do(p, provider.CreateCQ, r); return err }})
	}
	for name, r := range map[string]provider.RegDMMRRequest{
		"after the end": {Offset: 65}, "too long": {Length: 65}, "negative": {Offset: -1, Length: 2}, "negative length": {Length: -1},
		"wrapped": {Offset: math.MaxInt, Length: math.MaxInt}, "far": {Offset: 64, Length: 1},
	} {
		r.PD, r.DM = h.PD, h.dm
		all = append(all, command{"RegDMMR, " + name, func() error { _, err := provider.Do(p, provider.RegDMMR, r); return err }})
	}
	for _, length := range []int{0, -1, math.MinInt, math.MaxInt, ib.MaxDMSize + 1} {
		all = append(all, command{fmt.Sprintf("AllocDM, %d", length), func() error {
			_, err := provider.Do(p, provider.AllocDM, provider.AllocDMRequest{Length: length})
			return err
		}})
	}
	for bit := range 32 {
		access := verbs.AccessFlags(1) << bit
		if access&(verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessMWBind|verbs.AccessZeroBased|verbs.AccessOnDemand|verbs.AccessOptionalRange) != 0 {
			continue
		}
		all = append(all,
			command{fmt.Sprintf("AllocMR, access %#x", uint32(access)), func() error {
				_, err := provider.Do(p, provider.AllocMR, provider.AllocMRRequest{PD: h.PD, Length: 1, Access: access})
				return err
			}},
			command{fmt.Sprintf("RegMR, access %#x", uint32(access)), func() error {
				_, err := provider.Do(p, provider.RegMR, provider.RegMRRequest{PD: h.PD, Memory: make([]byte, 1), Access: access})
				return err
			}},
			command{fmt.Sprintf("ReregMR, access %#x", uint32(access)), func() error {
				return provider.Exec(p, provider.ReregMR, provider.ReregMRRequest{MR: h.mr, Flags: verbs.ReregChangeAccess, Access: access})
			}})
	}
	for _, flags := range []verbs.ReregFlags{0, verbs.ReregChangeTranslation, verbs.ReregChangePD, 1 << 3, math.MaxUint32} {
		all = append(all, command{fmt.Sprintf("ReregMR, only flags %#x", uint32(flags)), func() error {
			return provider.Exec(p, provider.ReregMR, provider.ReregMRRequest{MR: h.mr, Flags: flags})
		}})
	}
	for _, iova := range []uint64{math.MaxUint64, math.MaxUint64 - 1, math.MaxUint64 - 4095} {
		all = append(all, command{fmt.Sprintf("AllocMR at %#x", iova), func() error {
			_, err := provider.Do(p, provider.AllocMR, provider.AllocMRRequest{PD: h.PD, Length: 4096, IOVA: iova})
			return err
		}})
	}
	return all
}

func queuePairCommands(p provider.Provider, h handles, device verbs.DeviceAttr) (all []command) {
	for name, spoil := range map[string]func(r *provider.CreateQPRequest){
		"type 0":              func(r *provider.CreateQPRequest) { r.Type = 0 },
		"type XRC_RECV":       func(r *provider.CreateQPRequest) { r.Type = verbs.QPTypeXRCRecv },
		"GSI of port 0":       func(r *provider.CreateQPRequest) { r.Type = verbs.QPTypeGSI },
		"GSI of port 2":       func(r *provider.CreateQPRequest) { r.Type, r.Port = verbs.QPTypeGSI, 2 },
		"type 5":              func(r *provider.CreateQPRequest) { r.Type = 5 },
		"type 255":            func(r *provider.CreateQPRequest) { r.Type = 255 },
		"doorbell taken":      func(r *provider.CreateQPRequest) { r.DoorbellIndex = Doorbells },
		"doorbell too far":    func(r *provider.CreateQPRequest) { r.DoorbellIndex = 1 << 24 },
		"doorbell 2^32-1":     func(r *provider.CreateQPRequest) { r.DoorbellIndex = math.MaxUint32 },
		"max_send_wr":         func(r *provider.CreateQPRequest) { r.Cap.MaxSendWR = uint32(device.MaxQPWR) + 1 },
		"max_send_wr 2^32-1":  func(r *provider.CreateQPRequest) { r.Cap.MaxSendWR = math.MaxUint32 },
		"max_recv_wr 2^31+1":  func(r *provider.CreateQPRequest) { r.Cap.MaxRecvWR = 1<<31 + 1 },
		"max_recv_wr 2^32-1":  func(r *provider.CreateQPRequest) { r.Cap.MaxRecvWR = math.MaxUint32 },
		"max_send_sge":        func(r *provider.CreateQPRequest) { r.Cap.MaxSendSGE = uint32(device.MaxSGE) + 1 },
		"max_send_sge 2^28":   func(r *provider.CreateQPRequest) { r.Cap.MaxSendSGE = 1 << 28 }, // times 16 is 0
		"max_recv_sge 2^32-1": func(r *provider.CreateQPRequest) { r.Cap.MaxRecvSGE = math.MaxUint32 },
		"max_inline_data":     func(r *provider.CreateQPRequest) { r.Cap.MaxInlineData = math.MaxUint32 },
	} {
		all = append(all, command{"CreateQP, " + name, func() error {
			r := Request(h.PD, h.CQ, Doorbells+100)
			spoil(&r)
			_, err := provider.Do(p, provider.CreateQP, r)
			return err
		}})
	}
	return all
}

// srqCommands returns commands that do not change the SRQ.
func srqCommands(p provider.Provider, h handles, device verbs.DeviceAttr) (all []command) {
	for _, n := range []uint32{0, uint32(device.MaxSRQWR) + 1, 1<<31 + 1, math.MaxUint32} {
		all = append(all,
			command{fmt.Sprint("CreateSRQ, max_wr ", n), func() error {
				_, err := provider.Do(p, provider.CreateSRQ, provider.CreateSRQRequest{PD: h.PD, Attr: provider.SRQInitAttr{MaxWR: n}})
				return err
			}},
			command{fmt.Sprint("ModifySRQ, max_wr ", n), func() error {
				_, err := provider.Do(p, provider.ModifySRQ, provider.ModifySRQRequest{SRQ: h.srq, Attr: verbs.SRQAttr{MaxWR: n}, Mask: verbs.SRQMaxWR})
				return err
			}})
	}
	for _, n := range []uint32{uint32(device.MaxSRQSGE) + 1, 1 << 28, math.MaxUint32} {
		all = append(all, command{fmt.Sprint("CreateSRQ, max_sge ", n), func() error {
			_, err := provider.Do(p, provider.CreateSRQ, provider.CreateSRQRequest{PD: h.PD, Attr: provider.SRQInitAttr{MaxWR: 1, MaxSGE: n}})
			return err
		}})
	}
	for bit := 2; bit < 32; bit++ {
		mask := verbs.SRQAttrMask(1) << bit
		all = append(all, command{fmt.Sprintf("ModifySRQ, mask %#x", uint32(mask)), func() error {
			_, err := provider.Do(p, provider.ModifySRQ, provider.ModifySRQRequest{SRQ: h.srq, Attr: verbs.SRQAttr{MaxWR: 16, Limit: 1}, Mask: mask | verbs.SRQMaxWR | verbs.SRQLimit})
			return err
		}})
	}
	return append(all, command{"ModifySRQ, limit 2^32-1", func() error {
		_, err := provider.Do(p, provider.ModifySRQ, provider.ModifySRQRequest{SRQ: h.srq, Attr: verbs.SRQAttr{Limit: math.MaxUint32}, Mask: verbs.SRQLimit})
		return err
	}})
}

// modifyCommands returns commands for a queue pair in RESET, which stays in RESET.
func modifyCommands(p provider.Provider, h handles) (all []command) {
	add := func(name string, attr verbs.QPAttr, mask verbs.QPAttrMask) {
		all = append(all, command{"ModifyQP, " + name, func() error {
			_, err := provider.Do(p, provider.ModifyQP, provider.ModifyQPRequest{QP: h.qp, Attr: attr, Mask: mask})
			return err
		}})
	}
	good := verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: rig.TestQKey}
	add("all of the mask", good, math.MaxUint32)
	for bit := range 32 {
		if extra := verbs.QPAttrMask(1) << bit; rig.InitMask&extra == 0 {
			add(fmt.Sprintf("mask %#x besides", uint32(extra)), good, rig.InitMask|extra)
		} else {
			add(fmt.Sprintf("mask without %#x", uint32(extra)), good, rig.InitMask&^extra)
		}
	}
	for _, state := range []verbs.QPState{verbs.QPStateRTR, verbs.QPStateRTS, verbs.QPStateSQD, verbs.QPStateSQE, verbs.QPStateErr, 7, 8, 255} {
		add(fmt.Sprint("to state ", uint8(state)), verbs.QPAttr{State: state, Port: 1}, rig.InitMask)
		add(fmt.Sprint("to state alone ", uint8(state)), verbs.QPAttr{State: state}, verbs.QPAttrState)
	}
	for _, port := range []uint8{0, 2, 255} {
		attr := good
		attr.Port = port
		add(fmt.Sprint("port ", port), attr, rig.InitMask)
	}
	for _, index := range []uint16{1, 65535} {
		attr := good
		attr.PKeyIndex = index
		add(fmt.Sprint("P_Key index ", index), attr, rig.InitMask)
	}
	return all
}

// addressCommands returns commands for address handles and groups.
func addressCommands(s *rig.Station, h handles) (all []command) {
	p := s.Session
	for name, spoil := range map[string]func(a *verbs.AHAttr){
		"no destination": func(a *verbs.AHAttr) { a.GRH.DGID = verbs.GID{} },
		"port 0":         func(a *verbs.AHAttr) { a.Port = 0 },
		"port 255":       func(a *verbs.AHAttr) { a.Port = 255 },
		"SL 255":         func(a *verbs.AHAttr) { a.SL = 255 },
		"flow label":     func(a *verbs.AHAttr) { a.GRH.FlowLabel = math.MaxUint32 },
		"GID -1":         func(a *verbs.AHAttr) { a.GRH.SGIDIndex = -1 },
		"GID min":        func(a *verbs.AHAttr) { a.GRH.SGIDIndex = math.MinInt },
		"GID max":        func(a *verbs.AHAttr) { a.GRH.SGIDIndex = math.MaxInt },
		"other family":   func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.Line(s.End.IPv6) },
		"no such scope":  func(a *verbs.AHAttr) { a.GRH.DGID = verbs.GID{0xff, 0x01, 15: 1} },
	} {
		for _, noWait := range []bool{false, true} {
			all = append(all, command{"CreateAH, " + name, func() error {
				attr := *s.Route(s.End.IPv4)
				spoil(&attr)
				_, err := provider.DoContext(rig.Guard(s), p, provider.CreateAH, provider.CreateAHRequest{PD: h.PD, Attr: attr, NoWait: noWait})
				return err
			}})
		}
		all = append(all, command{"ModifyAH, " + name, func() error {
			attr := *s.Route(s.End.IPv4)
			spoil(&attr)
			return provider.ExecContext(rig.Guard(s), p, provider.ModifyAH, provider.ModifyAHRequest{AH: h.ah, Attr: attr})
		}})
	}
	for _, mgid := range []verbs.GID{{}, rig.GID(s.End.IPv4), rig.GID(s.End.IPv6), rig.GID(rig.GroupV4)} { // the last one is invalid because the queue pair is in RESET
		r := provider.McastRequest{QP: h.qp, MGID: mgid, MLID: 1}
		all = append(all, command{fmt.Sprint("AttachMcast to ", mgid), func() error { return provider.Exec(p, provider.AttachMcast, r) }},
			command{fmt.Sprint("DetachMcast from ", mgid), func() error { return provider.Exec(p, provider.DetachMcast, r) }})
	}
	for _, r := range []provider.JoinMulticastRequest{
		{}, {State: ib.JoinStateFullMember}, {Group: s.End.IPv4, State: ib.JoinStateFullMember},
		{Group: rig.GroupV4}, {Group: rig.GroupV4, State: 16}, {Group: rig.GroupV4, State: 1 << 7},
		{Group: netip.MustParseAddr("ff01::1"), State: ib.JoinStateFullMember},
		{Group: rig.GroupV6.WithZone("nowhere"), State: ib.JoinStateFullMember},
	} {
		all = append(all, command{fmt.Sprintf("JoinMulticast %+v", r), func() error { _, err := provider.Do(p, provider.JoinMulticast, r); return err }})
	}
	return all
}
