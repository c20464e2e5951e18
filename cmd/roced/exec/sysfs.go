// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"path"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/compat"
	"github.com/roced/roced/verbs/ib"
)

// tree holds the RDMA part of /sys/class: file contents by path below it. The value of a symbolic link starts
// with linkTo.
type tree map[string]string

const linkTo = "→"

// describeDevices queries the devices of the service and returns their tree.
func describeDevices(socket string) (tree, error) {
	names, err := client.Devices(socket)
	if err != nil {
		return nil, err
	}
	t := tree{"infiniband_verbs/abi_version": "6"}
	for i, name := range names {
		if err := t.addDevice(socket, name, i); err != nil {
			return nil, fmt.Errorf("device %s: %w", name, err)
		}
	}
	return t, nil
}

func (t tree) addDevice(socket, name string, number int) error {
	session, err := client.Dial(socket, name)
	if err != nil {
		return err
	}
	ctx, err := verbs.Open(session)
	if err != nil {
		return err
	}
	defer ctx.Close()
	attr, err := ctx.QueryDevice()
	if err != nil {
		return err
	}
	port, err := ctx.QueryPort(1)
	if err != nil {
		return err
	}
	gids, err := ctx.QueryGIDTable(1)
	if err != nil {
		return err
	}
	t.device(path.Join("infiniband", name), &attr)
	t.port(path.Join("infiniband", name, "ports/1"), &port, gids)
	if len(gids) > 0 && gids[0].IfIndex != 0 {
		t[path.Join("infiniband", name, "device/net", gids[0].Interface)] = linkTo + "/sys/class/net/" + gids[0].Interface
	}
	t.character(path.Join("infiniband_verbs", fmt.Sprintf("uverbs%d", number)), name, number)
	return nil
}

// device adds the attributes of a device (Documentation/ABI/stable/sysfs-class-infiniband).
func (t tree) device(at string, attr *verbs.DeviceAttr) {
	for name, value := range map[string]string{
		"node_type": "1: CA", "node_guid": guid(attr.NodeGUID), "sys_image_guid": guid(attr.SysImageGUID), "node_desc": "roced",
		"fw_ver": attr.FirmwareVersion, "hca_type": "roced", "hw_rev": fmt.Sprintf("0x%x", attr.HWVer), "device/numa_node": "-1",
		"device/vendor": fmt.Sprintf("0x%04x", attr.VendorID), "device/device": fmt.Sprintf("0x%04x", attr.VendorPartID),
	} {
		t[path.Join(at, name)] = value
	}
}

// port adds the attributes of a port. Unused GID table entries are zero, and reading their type fails.
func (t tree) port(at string, attr *verbs.PortAttr, gids []verbs.GIDEntry) {
	for name, value := range map[string]string{
		"state": fmt.Sprintf("%d: %s", attr.State, portStates[attr.State]), "phys_state": fmt.Sprintf("%d: %s", attr.PhysState, physStates[attr.PhysState]),
		"link_layer": "Ethernet", "lid": "0x0", "lid_mask_count": "0", "sm_lid": "0x0", "sm_sl": "0",
		"cap_mask": fmt.Sprintf("0x%08x", uint32(attr.CapFlags)), "rate": rate(attr), "pkeys/0": "0xffff",
	} {
		t[path.Join(at, name)] = value
	}
	for index := range attr.GIDTableLen {
		t[path.Join(at, "gids", fmt.Sprint(index))] = groups(verbs.GID{})
	}
	for _, entry := range gids {
		index := fmt.Sprint(entry.Index)
		t[path.Join(at, "gids", index)] = groups(entry.GID)
		t[path.Join(at, "gid_attrs/types", index)] = entry.Type.String()
		t[path.Join(at, "gid_attrs/ndevs", index)] = entry.Interface
	}
}

// character adds a uverbs character device. roced has none, so the device number is that of /dev/null.
func (t tree) character(at, device string, number int) {
	t[path.Join(at, "ibdev")] = device
	t[path.Join(at, "ibdev_index")] = fmt.Sprint(number)
	t[path.Join(at, "abi_version")] = "1"
	t[path.Join(at, "dev")] = "1:3"
	t[path.Join(at, "device")] = linkTo + "../../infiniband/" + device + "/device"
}

// Names of port states in sysfs.
var (
	portStates = map[verbs.PortState]string{verbs.PortDown: "DOWN", verbs.PortInit: "INIT", verbs.PortArmed: "ARMED", verbs.PortActive: "ACTIVE", verbs.PortActiveDefer: "ACTIVE_DEFER"}
	physStates = map[ib.PortPhysState]string{ib.PhysStateDisabled: "Disabled", ib.PhysStatePolling: "Polling", ib.PhysStateLinkUp: "LinkUp"}
)

// guid formats a GUID as four groups.
func guid(n uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", n>>48, n>>32&0xffff, n>>16&0xffff, n&0xffff)
}

// groups formats a GID as eight groups without abbreviation.
func groups(gid verbs.GID) (text string) {
	for i := 0; i < len(gid); i += 2 {
		if i > 0 {
			text += ":"
		}
		text += fmt.Sprintf("%02x%02x", gid[i], gid[i+1])
	}
	return text
}

// speeds maps ActiveSpeed to the speed per lane in Mbit/s and the kernel's name.
var speeds = map[uint8]struct {
	mbits int
	name  string
}{1: {2500, "SDR"}, 2: {5000, "DDR"}, 4: {10000, "QDR"}, 8: {10000, "FDR10"}, 16: {14000, "FDR"}, 32: {25000, "EDR"}, 64: {50000, "HDR"}, 128: {100000, "NDR"}}

func rate(attr *verbs.PortAttr) string {
	speed, lanes := speeds[attr.ActiveSpeed], max(compat.WidthToInt(attr.ActiveWidth), 0)
	tenths := speed.mbits * lanes / 100
	whole := fmt.Sprint(tenths / 10)
	if tenths%10 != 0 {
		whole += fmt.Sprintf(".%d", tenths%10)
	}
	return fmt.Sprintf("%s Gb/sec (%dX %s)", whole, lanes, speed.name)
}
