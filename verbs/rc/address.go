package rc

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/verbs"
)

// Address is a connection's end, as the other end has to know it when no connection ids are used.
type Address struct {
	GID verbs.GID
	QPN verbs.QPN
	PSN verbs.PSN // of the first packet
	// Reads is how many reads and atomics it answers at once; 0 stands for as many as the other end does.
	Reads int
}

// String is for people to read.
func (a Address) String() string { return fmt.Sprintf("%v:%v, PSN %v", a.GID.Addr(), a.QPN, a.PSN) }

// New makes a connection's end without the connection: for programs that tell each other their addresses
// (Local) by other means, such as TCP, and then Connect. Its receives are posted.
func New(c *verbs.Context, o Options) (*Conn, error) {
	conn, err := newConn(c, o)
	if err != nil {
		return nil, fmt.Errorf("new connection: %w", err)
	}
	if err := conn.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("new connection: %w", err), conn.Close())
	}
	return conn, nil
}

// open makes the queue pair, which is in INIT afterwards.
func (c *Conn) open() (err error) {
	if c.source, err = c.chooseSource(); err != nil {
		return err
	}
	if c.qp, err = c.domain.pd.CreateQP(c.initAttr()); err != nil {
		return err
	}
	attr := verbs.QPAttr{State: verbs.QPStateInit, Port: port, AccessFlags: c.access()}
	mask := verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrAccessFlags
	if err := c.qp.Modify(&attr, mask); err != nil {
		return err
	}
	return c.postRecvs()
}

// access is what the peer may do to regions that allow it.
func (c *Conn) access() verbs.AccessFlags {
	if c.options.Type == verbs.QPTypeUC {
		return verbs.AccessRemoteWrite
	}
	return verbs.AccessRemoteRead | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic
}

// chooseSource is the line of the GID table to send from: that of Options.Source, else the first.
func (c *Conn) chooseSource() (verbs.GIDEntry, error) {
	entries, err := c.domain.verbs.QueryGIDTable(port)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	source, at := c.options.Source, 0
	if source.IsValid() && !source.IsUnspecified() {
		own := verbs.GIDFromAddr(source)
		at = slices.IndexFunc(entries, func(e verbs.GIDEntry) bool { return e.GID == own })
	}
	if at < 0 || at >= len(entries) {
		return verbs.GIDEntry{}, fmt.Errorf("%w: the device has no address %v (Options.Source), or none at all; ip address add",
			verbs.ErrNoGID, source)
	}
	return entries[at], nil
}

// Local is the address of this end.
func (c *Conn) Local() Address {
	if c == nil || c.qp == nil {
		return Address{}
	}
	if c.id == nil {
		return Address{GID: c.source.GID, QPN: c.qp.Number(), PSN: c.psn, Reads: c.options.Reads}
	}
	local, _ := c.id.LocalAddr() // zero if the device is gone
	attr, _, _ := c.qp.Query()
	gid := verbs.GIDFromAddr(local.Addr())
	return Address{GID: gid, QPN: c.qp.Number(), PSN: attr.SQPSN, Reads: int(attr.MaxDestRDAtomic)}
}

// Peer is the address of the other end; zero before there is one. Its PSN is that of the packet that comes
// next.
func (c *Conn) Peer() Address {
	if c == nil || c.qp == nil {
		return Address{}
	}
	attr, _, err := c.qp.Query()
	if err != nil || attr.DestQPN == 0 {
		return Address{}
	}
	return Address{GID: attr.AHAttr.GRH.DGID, QPN: attr.DestQPN, PSN: attr.RQPSN, Reads: int(attr.MaxRDAtomic)}
}

// The attributes of the connections that ibv_rc_pingpong and perftest make.
const (
	retries      = 7
	foreverRNR   = 7
	leastRNRTime = 640 * time.Microsecond
)

// Connect connects an end that New has made to the other, which does the same with this one's address. It
// returns at once: whether there is anybody, requests will show.
func (c *Conn) Connect(peer Address) error {
	if c == nil {
		return fmt.Errorf("connect: %w", errNil)
	}
	if err := c.connect(&peer); err != nil {
		return fmt.Errorf("connect to %v: %w", peer, c.explain(err))
	}
	return nil
}

func (c *Conn) connect(peer *Address) error {
	c.making.Lock()
	defer c.making.Unlock()
	o := &c.options
	switch {
	case c.life.Err() != nil:
		return ErrClosed
	case c.id != nil:
		return fmt.Errorf("%w: Dial or Accept has connected it", verbs.ErrInvalid)
	case peer.GID.IsIPv4() != c.source.GID.IsIPv4():
		return fmt.Errorf("%w: this end's address is %v, of the other IP version; see Options.Source",
			verbs.ErrInvalid, c.source.GID.Addr())
	}
	reads := o.Reads
	if peer.Reads > 0 {
		reads = min(reads, peer.Reads)
	}
	route := verbs.GlobalRoute{DGID: peer.GID, SGIDIndex: c.source.Index, TrafficClass: o.TrafficClass}
	return c.qp.Connect(&verbs.QPAttr{
		AHAttr: verbs.AHAttr{Port: port, GRH: route}, Port: port, AccessFlags: c.access(), PathMTU: o.MTU, DestQPN: peer.QPN, RQPSN: peer.PSN, SQPSN: c.psn,
		MaxRDAtomic: uint8(reads), MaxDestRDAtomic: uint8(o.Reads), MinRNRTimer: verbs.RNRTimerCode(leastRNRTime),
		Timeout: verbs.TimeoutCode(o.Timeout), RetryCnt: retries, RNRRetry: foreverRNR,
	})
}

// LocalAddr is this end's address and port, of a connection made by ids; without a port of others.
func (c *Conn) LocalAddr() netip.AddrPort {
	if c == nil {
		return netip.AddrPort{}
	}
	if ends := c.ends.Load(); ends != nil {
		return ends[0]
	}
	if c.id != nil {
		local, _ := c.id.LocalAddr() // zero if the device is gone
		return local
	}
	return netip.AddrPortFrom(c.source.GID.Addr(), 0)
}

// PeerAddr is the other end's.
func (c *Conn) PeerAddr() netip.AddrPort {
	if c == nil {
		return netip.AddrPort{}
	}
	if ends := c.ends.Load(); ends != nil {
		return ends[1]
	}
	if c.id != nil {
		peer, _ := c.id.PeerAddr() // zero if the device is gone
		return peer
	}
	return netip.AddrPortFrom(c.Peer().GID.Addr(), 0)
}
