// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/verbs"
)

// QPAddr is the address of a connection's queue pair, which the other end needs if the connection is made without
// connection ids.
type QPAddr struct {
	GID verbs.GID
	QPN verbs.QPN
	PSN verbs.PSN // PSN of the first packet
	// Reads is the maximum number of outstanding reads and atomics that the queue pair accepts; 0 means the number of
	// the other end.
	Reads int
}

// String returns a text for users.
func (a QPAddr) String() string { return fmt.Sprintf("%v:%v, PSN %v", a.GID.Addr(), a.QPN, a.PSN) }

// New creates one end of a connection that is not connected yet. It is for programs that exchange their addresses
// (LocalQP) by other means, such as TCP, and then call Connect. Its receives are posted.
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

// open creates the queue pair, moves it to INIT, and posts its receives.
func (c *Conn) open() (err error) {
	if c.source, err = chooseSource(c.domain.verbs, c.options.Source); err != nil {
		return err
	}
	if c.qp, err = c.domain.pd.CreateQP(c.initAttr()); err != nil {
		return err
	}
	attr := verbs.QPAttr{State: verbs.QPStateInit, Port: port, AccessFlags: c.options.access()}
	mask := verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrAccessFlags
	if err := c.qp.Modify(&attr, mask); err != nil {
		return err
	}
	return c.postRecvs()
}

// access returns the access that the peer is granted to regions that allow it.
func (o *Options) access() verbs.AccessFlags {
	if o.Type == verbs.QPTypeUC {
		return verbs.AccessRemoteWrite
	}
	return verbs.AccessRemoteRead | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic
}

// chooseSource returns the GID table entry of the source address: that of an address, or the first one if source is
// zero.
func chooseSource(c *verbs.Context, source netip.Addr) (verbs.GIDEntry, error) {
	entries, err := c.QueryGIDTable(port)
	if err != nil {
		return verbs.GIDEntry{}, err
	}
	at := 0
	if source.IsValid() && !source.IsUnspecified() {
		own := verbs.GIDFromAddr(source)
		at = slices.IndexFunc(entries, func(e verbs.GIDEntry) bool { return e.GID == own })
	}
	if at < 0 || at >= len(entries) {
		return verbs.GIDEntry{}, fmt.Errorf("%w: the device has no address, or not %v (Options.Source); add it with ip address add",
			verbs.ErrNoGID, source)
	}
	return entries[at], nil
}

// LocalQP returns the address of this end's queue pair.
func (c *Conn) LocalQP() QPAddr {
	if c == nil || c.qp == nil {
		return QPAddr{}
	}
	id := c.handshake.id
	if id == nil {
		return QPAddr{GID: c.source.GID, QPN: c.qp.Number(), PSN: c.psn, Reads: c.options.Reads}
	}
	local, _ := id.LocalAddr() // zero if the device has failed
	attr, _, _ := c.qp.Query()
	gid := verbs.GIDFromAddr(local.Addr())
	return QPAddr{GID: gid, QPN: c.qp.Number(), PSN: attr.SQPSN, Reads: int(attr.MaxDestRDAtomic)}
}

// RemoteQP returns the address of the other end's queue pair; zero before the connection is made. Its PSN is that of
// the next packet.
func (c *Conn) RemoteQP() QPAddr {
	if c == nil || c.qp == nil {
		return QPAddr{}
	}
	attr, _, err := c.qp.Query()
	if err != nil || attr.DestQPN == 0 {
		return QPAddr{}
	}
	return QPAddr{GID: attr.AHAttr.GRH.DGID, QPN: attr.DestQPN, PSN: attr.RQPSN, Reads: int(attr.MaxRDAtomic)}
}

// The attributes of connections, as in ibv_rc_pingpong and perftest.
const (
	retries      = 7
	foreverRNR   = 7
	leastRNRTime = 640 * time.Microsecond
)

// Connect connects an end created by New to the other end, which must do the same with this end's address. It does not
// wait for the other end: only later requests show whether it exists.
func (c *Conn) Connect(remote QPAddr) error {
	if c == nil {
		return fmt.Errorf("connect: %w", errNil)
	}
	if err := c.connect(&remote); err != nil {
		return fmt.Errorf("connect to %v: %w", remote, c.life.Explain(err))
	}
	return nil
}

func (c *Conn) connect(remote *QPAddr) error {
	if err := c.life.Enter(); err != nil {
		return err
	}
	defer c.life.Leave()
	o := &c.options
	switch {
	case c.handshake.id != nil:
		return fmt.Errorf("%w: the connection was made by Dial or Accept", verbs.ErrInvalid)
	case remote.GID.IsIPv4() != c.source.GID.IsIPv4():
		return fmt.Errorf("%w: this end's address is %v, of the other IP version; see Options.Source",
			verbs.ErrInvalid, c.source.GID.Addr())
	}
	reads := o.Reads
	if remote.Reads > 0 {
		reads = min(reads, remote.Reads)
	}
	route := verbs.GlobalRoute{DGID: remote.GID, SGIDIndex: c.source.Index, TrafficClass: o.TrafficClass}
	return c.qp.Connect(&verbs.QPAttr{
		AHAttr: verbs.AHAttr{Port: port, GRH: route}, Port: port, AccessFlags: o.access(), PathMTU: o.MTU,
		DestQPN: remote.QPN, RQPSN: remote.PSN, SQPSN: c.psn,
		MaxRDAtomic: uint8(reads), MaxDestRDAtomic: uint8(o.Reads), MinRNRTimer: verbs.RNRTimerCode(leastRNRTime),
		Timeout: verbs.TimeoutCode(o.Timeout), RetryCnt: retries, RNRRetry: foreverRNR,
	})
}

// LocalAddr returns this end's address and port; the port is 0 for a connection created by New.
func (c *Conn) LocalAddr() netip.AddrPort {
	if c == nil {
		return netip.AddrPort{}
	}
	if ends := c.ends.Load(); ends != nil {
		return ends[0]
	}
	if id := c.handshake.id; id != nil {
		local, _ := id.LocalAddr() // zero if the device has failed
		return local
	}
	return netip.AddrPortFrom(c.source.GID.Addr(), 0)
}

// RemoteAddr returns the other end's address and port; the port is 0 for a connection created by New.
func (c *Conn) RemoteAddr() netip.AddrPort {
	if c == nil {
		return netip.AddrPort{}
	}
	if ends := c.ends.Load(); ends != nil {
		return ends[1]
	}
	if id := c.handshake.id; id != nil {
		remote, _ := id.PeerAddr() // zero if the device has failed
		return remote
	}
	return netip.AddrPortFrom(c.RemoteQP().GID.Addr(), 0)
}
