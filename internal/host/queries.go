// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/roced/roced/internal/errno"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Queries queries the kernel for the state of one interface and of its routes and neighbours.
type Queries struct {
	index   int
	handle  *netlink.Handle
	sockets map[int]*nl.SocketHandle
}

// ErrNoInterface reports that the interface is not, or no longer, in this network namespace.
var ErrNoInterface = errno.New("interface not found", unix.ENODEV)

// queryTimeout is much longer than a query takes, because the kernel responds during the request.
const queryTimeout = 10 * time.Second

// OpenQueries opens sockets for queries about an interface in the calling thread's network namespace.
func OpenQueries(index int) (*Queries, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("netlink: %w", err)
	}
	q := &Queries{index: index, handle: handle, sockets: map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}}
	if err := q.prepare(socket); err != nil {
		q.Close()
		return nil, fmt.Errorf("netlink: %w", err)
	}
	return q, nil
}

// prepare enables filtering of lists in the kernel. Listing the addresses of one interface is then not
// interrupted by changes of other interfaces.
func (q *Queries) prepare(socket *nl.NetlinkSocket) error {
	timeout := unix.NsecToTimeval(queryTimeout.Nanoseconds())
	return errors.Join(
		unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1),
		socket.SetReceiveTimeout(&timeout), q.handle.SetSocketTimeout(queryTimeout),
	)
}

// Close closes the sockets.
func (q *Queries) Close() {
	q.handle.Close()
	q.sockets[unix.NETLINK_ROUTE].Socket.Close()
}

// Link is the state of an interface.
type Link struct {
	netlink.Link
	// Discipline is the name of the root queueing discipline (tc(8)); "noqueue" if not set.
	Discipline string
}

// Link queries the interface. It returns ErrNoInterface if the interface no longer exists.
func (q *Queries) Link() (Link, error) {
	about := nl.NewIfInfomsg(unix.AF_UNSPEC)
	about.Index = int32(q.index)
	answers, err := q.request(unix.RTM_GETLINK, 0, unix.RTM_NEWLINK, about)
	if errors.Is(err, unix.ENODEV) {
		return Link{}, ErrNoInterface
	}
	if err != nil {
		return Link{}, fmt.Errorf("query the interface: %w", err)
	}
	if len(answers) == 0 || len(answers[0]) < unix.SizeofIfInfomsg {
		return Link{}, fmt.Errorf("query the interface: %w: empty response", unix.EPROTO)
	}
	link, err := netlink.LinkDeserialize(nil, answers[0])
	discipline := attribute(answers[0][unix.SizeofIfInfomsg:], unix.IFLA_QDISC)
	return Link{link, strings.TrimRight(string(discipline), "\x00")}, err
}

// request sends a request and returns the responses of one type.
func (q *Queries) request(kind, flags int, answer uint16, data ...nl.NetlinkRequestData) ([][]byte, error) {
	request := nl.NewNetlinkRequest(kind, flags)
	request.Sockets = q.sockets
	for _, d := range data {
		request.AddData(d)
	}
	return request.Execute(unix.NETLINK_ROUTE, answer)
}

// listTries is the number of attempts to read a list that changes meanwhile.
const listTries = 5

// list queries a list, and repeats the query if the kernel reports that the list changed meanwhile.
func (q *Queries) list(kind int, answer uint16, data ...nl.NetlinkRequestData) (all [][]byte, err error) {
	for range listTries {
		if all, err = q.request(kind, unix.NLM_F_DUMP, answer, data...); !errors.Is(err, nl.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
