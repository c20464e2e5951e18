package hca

import (
	"fmt"
	"runtime/debug"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// QueryDevice implements verbs.Provider.
func (d *Device) QueryDevice() (verbs.DeviceAttr, error) {
	if err := d.enter(); err != nil {
		return verbs.DeviceAttr{}, err
	}
	defer d.mu.Unlock()
	attr := verbs.DeviceAttr{
		Name: d.name, FirmwareVersion: version(), NodeGUID: guid(d.status.mac), PhysicalPorts: 1,
		MaxQP: maxQP, MaxQPWR: maxQPWR, MaxSGE: ring.MaxSGE, MaxInline: maxInline, MaxCQ: maxCQ, MaxCQE: maxCQE,
		MaxMR: maxMR, MaxMRSize: maxMRSize, MaxPD: maxPD, MaxAH: maxAH, MaxPKeys: 1,
		MaxMcastGrp: groupLimits.Groups, MaxMcastQPAttach: groupLimits.QPsPerGroup, MaxTotalMcastQPAttach: groupLimits.Attachments,
	}
	attr.XDPMode, attr.AFXDPMode = d.host.describe()
	return attr, nil
}

// version is roced's, as the go command wrote it into the program: a tag, or "(devel)".
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
func (d *Device) QueryPort(port uint8) (verbs.PortAttr, error) {
	if err := checkPort(port); err != nil {
		return verbs.PortAttr{}, err
	}
	if err := d.enter(); err != nil {
		return verbs.PortAttr{}, err
	}
	defer d.mu.Unlock()
	violations := d.engine.Counters().Drops[datapath.DropQKey]
	attr := verbs.PortAttr{
		State: verbs.PortDown, MaxMTU: d.maxMTU, ActiveMTU: d.activeMTU, GIDTableLen: len(d.gids.lines), PKeyTableLen: 1,
		MaxMsgSize: uint32(d.activeMTU.Bytes()), QKeyViolations: violations, InterfaceMTU: d.status.mtu,
	}
	if d.status.up {
		attr.State = verbs.PortActive
	}
	return attr, nil
}

// QueryGID implements verbs.Provider.
func (d *Device) QueryGID(port uint8, index int) (verbs.GIDEntry, error) {
	if err := checkPort(port); err != nil {
		return verbs.GIDEntry{}, err
	}
	if err := d.enter(); err != nil {
		return verbs.GIDEntry{}, err
	}
	defer d.mu.Unlock()
	gid, err := d.gids.get(index)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	return verbs.GIDEntry{GID: gid, Index: index, Interface: d.name}, nil
}

// QueryPKey implements verbs.Provider.
func (d *Device) QueryPKey(port uint8, index int) (wire.PKey, error) {
	if err := checkPort(port); err != nil {
		return 0, err
	}
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	if index != 0 {
		return 0, fmt.Errorf("%w: P_Key index %d; the table has index 0", verbs.ErrInvalid, index)
	}
	return wire.PKeyDefault, nil
}
