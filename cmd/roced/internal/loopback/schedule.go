// SPDX-License-Identifier: Apache-2.0

package loopback

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
)

// Event is a change of a host of an in-memory network.
type Event struct {
	At        time.Duration // since the network was created
	Host      string
	what      string
	addresses []netip.Addr
}

// Events of a schedule.
const (
	linkDown     = "down"
	linkUp       = "up"
	newAddresses = "address"
)

// ReadSchedule reads a file of events. Each line has a time, a host, and down, up, or address with the new
// addresses. # starts a comment.
func ReadSchedule(path string) ([]Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--schedule: %w", err)
	}
	defer file.Close()
	return parseSchedule(path, file)
}

func parseSchedule(path string, from io.Reader) (list []Event, err error) {
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		e, err := parseEvent(words)
		if err != nil {
			return nil, fmt.Errorf("%w: --schedule %s, line %d: %w", verbs.ErrInvalid, path, number, err)
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b Event) int { return int(a.At - b.At) })
	return list, lines.Err()
}

func parseEvent(words []string) (e Event, err error) {
	if len(words) < 3 {
		return e, fmt.Errorf("a line must have a time, a host and an event, such as 1.5s loop1 down")
	}
	if e.At, err = time.ParseDuration(words[0]); err != nil || e.At < 0 {
		return e, fmt.Errorf("%q is not a time, such as 1.5s or 200ms", words[0])
	}
	e.Host, e.what = words[1], words[2]
	switch {
	case e.what == newAddresses && len(words) == 4:
		for _, text := range strings.Split(words[3], ",") {
			a, err := netip.ParseAddr(text)
			if err != nil {
				return e, fmt.Errorf("%q is not an IP address", text)
			}
			e.addresses = append(e.addresses, a)
		}
	case e.what != linkDown && e.what != linkUp, len(words) > 3:
		return e, fmt.Errorf("an event must be down, up, or address ADDRESS[,ADDRESS]: %q", strings.Join(words[2:], " "))
	}
	return e, nil
}

// apply applies an event to its host. Programs on the host have been notified when it returns.
func (e *Event) apply(host *memnet.Host) error {
	switch e.what {
	case linkDown, linkUp:
		host.SetUp(e.what == linkUp)
		return nil
	}
	return host.SetAddresses(e.addresses...)
}

// follow applies the events of a schedule at their times, until the network is closed.
func (n *Network) follow(schedule []Event) {
	start := time.Now()
	for i := range schedule {
		e := &schedule[i]
		select {
		case <-time.After(e.At - time.Since(start)):
		case <-n.closing:
			return
		}
		host := n.hostOf(e.Host)
		if host == nil {
			n.log.Warn("event of an unknown host in the schedule", "host", e.Host, "time", e.At)
			continue
		}
		if err := e.apply(host); err != nil {
			n.log.Warn("cannot apply an event of the schedule", "host", e.Host, "time", e.At, "error", err)
		}
	}
}
