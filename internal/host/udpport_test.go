// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// TestPortHolders: a socket of this process is found, with its address.
func TestPortHolders(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1", "::1"} {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address)})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		list := PortHolders(conn.LocalAddr().(*net.UDPAddr).AddrPort().Port())
		at := slices.IndexFunc(list, func(h PortHolder) bool { return h.Address == netip.MustParseAddr(address) })
		if at < 0 || !strings.Contains(list[at].Program, "(process "+strconv.Itoa(os.Getpid())+")") || list[at].String() != list[at].Program {
			t.Errorf("%s: %+v", address, list)
		}
	}
}

// TestParsePortHolders: owners are reported by program if the caller is allowed to inspect them, otherwise by user.
func TestParsePortHolders(t *testing.T) {
	t.Parallel()
	const text = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  12: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 4711 2 0 0
  13: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2 0 0
  14: 0200000A:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5 2 0 0
`
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		needs.Skip(t, "a little-endian processor: the text was recorded on one")
	}
	var says []string
	for _, h := range parsePortHolders(text, 4791, func(inode string) string { return map[string]string{"5": "x (process 5)"}[inode] }) {
		says = append(says, h.Address.String()+" "+h.String())
	}
	if !slices.Equal(says, []string{"127.0.0.1 a program of user 1000", "0.0.0.0 a program of user 0", "10.0.0.2 x (process 5)"}) {
		t.Errorf("%q", says)
	}
}
