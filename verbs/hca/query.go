package hca

import (
	"fmt"
	"runtime/debug"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// QueryDevice implements verbs.Provider.
func (s *Session) QueryDevice() (verbs.DeviceAttr, error) {
	if err := s.enter(); err != nil {
		return verbs.DeviceAttr{}, err
	}
	card, limits := s.card, &s.config.Limits
	defer card.mu.Unlock()
	attr := verbs.DeviceAttr{
		Name: card.Name(), FirmwareVersion: version(), NodeGUID: guid(card.status.mac), PhysicalPorts: 1,
		MaxQP: limits.QPs, MaxQPWR: maxQPWR, MaxSGE: ring.MaxSGE, MaxInline: maxInline, MaxCQ: limits.CQs, MaxCQE: maxCQE,
		MaxSRQ: limits.SRQs, MaxSRQWR: maxSRQWR, MaxSRQSGE: ring.MaxSGE,
		MaxMR: limits.MRs, MaxMRSize: maxMRSize, MaxPD: limits.PDs, MaxAH: limits.AHs, MaxPKeys: 1,
		MaxMcastGrp: groupLimits.Groups, MaxMcastQPAttach: groupLimits.QPsPerGroup, MaxTotalMcastQPAttach: limits.Attachments,
	}
	attr.XDPMode, attr.AFXDPMode = card.host.describe()
	attr.SendMode, attr.SendReason = card.sendMode()
	return attr, nil
}

// sendMode names how bursts leave now, and why not in trains. The caller holds mu.
func (card *Card) sendMode() (mode, why string) {
	xdp, ok := card.link.(*link.XDP)
	switch {
	case !ok:
		return "none", ""
	case card.status.trains.Use && xdp.TrainsUnable():
		return string(SendAFXDP), "the kernel has refused a train"
	case card.status.trains.Use:
		return string(SendTrains), ""
	}
	return string(SendAFXDP), card.status.noTrains
}

// version is roced's version from the program's build information: a tag, or "(devel)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == "github.com/roced/roced" && module.Version != "" {
			return module.Version
		}
	}
	return "(devel)"
}

// guid makes the EUI-64 of a MAC address (RFC 4291, appendix A).
func guid(m wire.MAC) (g uint64) {
	for _, b := range []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]} {
		g = g<<8 | uint64(b)
	}
	return g
}

func checkPort(port uint8) error {
	if port != 1 {
		return fmt.Errorf("%w: port %d; the device has port 1", verbs.ErrInvalid, port)
	}
	return nil
}

// QueryPort implements verbs.Provider.
func (s *Session) QueryPort(r verbs.QueryPortRequest) (verbs.PortAttr, error) {
	if err := checkPort(r.Port); err != nil {
		return verbs.PortAttr{}, err
	}
	if err := s.enter(); err != nil {
		return verbs.PortAttr{}, err
	}
	card := s.card
	defer card.mu.Unlock()
	violations := card.engine.Counters().Drops[datapath.DropQKey]
	attr := verbs.PortAttr{
		State: verbs.PortDown, MaxMTU: card.largestMTU(), ActiveMTU: card.activeMTU, GIDTableLen: len(card.gids.lines), PKeyTableLen: 1,
		MaxMsgSize: uint32(card.activeMTU.Bytes()), QKeyViolations: violations, InterfaceMTU: card.status.mtu,
	}
	if card.status.up {
		attr.State = verbs.PortActive
	}
	return attr, nil
}

// QueryGIDTable implements verbs.Provider.
func (s *Session) QueryGIDTable(r verbs.QueryGIDTableRequest) (grant verbs.QueryGIDTableGrant, err error) {
	if err := checkPort(r.Port); err != nil {
		return grant, err
	}
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	grant.Entries = s.card.gids.entries(s.card.Name())
	return grant, nil
}

// QueryPKey implements verbs.Provider.
func (s *Session) QueryPKey(r verbs.QueryPKeyRequest) (grant verbs.QueryPKeyGrant, err error) {
	if err := checkPort(r.Port); err != nil {
		return grant, err
	}
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	if r.Index != 0 {
		return grant, fmt.Errorf("%w: P_Key index %d; the table has index 0", verbs.ErrInvalid, r.Index)
	}
	return verbs.QueryPKeyGrant{PKey: wire.PKeyDefault}, nil
}
