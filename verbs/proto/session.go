// SPDX-License-Identifier: Apache-2.0

package proto

// The versions of the protocol that this release supports. Both sides state theirs; the highest common version is used.
const (
	OldestVersion = 3
	Version       = 3
)

// CommonVersion returns the highest common version of this release and the other side, which supports those from oldest
// to newest; false without a common version.
func CommonVersion(oldest, newest uint16) (version uint16, found bool) {
	version = min(newest, Version)
	return version, version >= max(oldest, OldestVersion)
}

// Magic begins a hello: "rocd" in memory.
const Magic = 0x64636F72

// The limits of the fields of a hello.
const (
	maxDevices = 128
	nameLen    = 64
)

// The commands of a connection.
var (
	Hello      = command(1, "hello", visitHello, visitWelcome)
	OpenDevice = command(2, "open_device", visitOpen, visitOpened)
	Close      = command(3, "close", none, none)
	// ListDevices is Hello's list with the attributes of devices that are known before they are open.
	ListDevices = command(11, "list_devices", none, visitDevices)
)

// HelloRequest begins a connection.
type HelloRequest struct {
	Magic          uint32
	Oldest, Newest uint16 // versions of the protocol that the client supports
}

// Welcome is the reply to a HelloRequest.
type Welcome struct {
	Version uint16 // to be used
	Devices []string
}

func visitHello(c *coder, r *HelloRequest) {
	u32(c, "magic", &r.Magic)
	u16(c, "oldest", &r.Oldest)
	u16(c, "newest", &r.Newest)
	if c.direction == decoding && r.Magic != Magic {
		c.fail("no hello of roced")
	}
}

func visitWelcome(c *coder, g *Welcome) {
	u16(c, "version", &g.Version)
	c.reserved(6)
	list(c, "devices", maxDevices, &g.Devices, func(c *coder, name *string) { c.text("name", nameLen, name) })
}

// OpenRequest requests a session on a device. A connection has at most one.
type OpenRequest struct{ Device string }

// Opened is a session. Its reply carries three descriptors: the memory that both sides share, a memfd; a stream
// socket, by which the service sends the EventIDs of CQs that had an event, 8 bytes each; and an eventfd, to
// which the client writes to wake the service: 1, which is not read.
type Opened struct {
	Size     uint64 // of the memory, in bytes
	Doorbell Place
}

// ListedDevice is a device that can be opened.
type ListedDevice struct {
	Name                   string
	NodeGUID, SysImageGUID uint64 // as returned by QueryDevice when it is open
	NodeType               uint8  // ibv_node_type: NodeCA
}

// NodeCA is the type of devices of RoCE (IBV_NODE_CA).
const NodeCA = 1

func visitDevices(c *coder, all *[]ListedDevice) {
	list(c, "devices", maxDevices, all, func(c *coder, d *ListedDevice) {
		c.text("name", nameLen, &d.Name)
		u64(c, "node_guid", &d.NodeGUID)
		u64(c, "sys_image_guid", &d.SysImageGUID)
		u8(c, "node_type", &d.NodeType)
		c.reserved(7)
	})
}

// maxShared exceeds the size of any session's memory.
const maxShared = 1 << 46

func visitOpen(c *coder, r *OpenRequest) { c.text("device", nameLen, &r.Device) }

func visitOpened(c *coder, g *Opened) {
	u64(c, "memory_size", &g.Size)
	c.place("doorbell", &g.Doorbell)
	if c.direction == decoding && (g.Size == 0 || g.Size > maxShared) {
		c.fail("a memory of %d bytes", g.Size)
	}
}
