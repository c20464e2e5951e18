// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// What commands about ids say is understood on the other side.
func TestIDsCross(t *testing.T) {
	zoned := netip.MustParseAddrPort("[fe80::1%eth0]:7174")
	ah := verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GID{1, 15: 2}, SGIDIndex: 3, TrafficClass: 6}}
	grantCrosses(t, GetCMEvent, provider.GetCMEventGrant{Found: true, Drained: true, Event: provider.CMEvent{
		Type: ib.CMEventConnectRequest, Status: -110, ID: 1, Listener: 2, Context: 1 << 63, AH: ah, ConnParam: ib.ConnParam{QPN: 0xFFFFFF, QKey: 5, PrivateData: []byte("private"), ResponderResources: 1, SRQ: true},
	}})
	grantCrosses(t, QueryID, provider.QueryIDGrant{PortSpace: wire.PortSpaceUDP, QPType: verbs.QPTypeUD, Local: zoned, OnDevice: true, AH: ah})
	grantCrosses(t, InitIDQPAttr, provider.InitIDQPAttrGrant{Attr: verbs.QPAttr{State: 1, Port: 1, QKey: 2}, Mask: 3})
	grantCrosses(t, ListIDs, IDList{More: true, Next: ObjectPlace{1, 2, 3}, IDs: []ClientID{{Client: 1, ID: ID{Handle: 4, PortSpace: wire.PortSpaceTCP, State: "LISTEN", Local: zoned}}}})
	requestCrosses(t, SetIDOption, provider.SetIDOptionRequest{ID: 1, Option: ib.IDOptionAFOnly, Value: 1 << 31})
	requestCrosses(t, BindID, provider.BindIDRequest{ID: 1, Address: netip.MustParseAddrPort("0.0.0.0:0"), Shared: true, Whose: 1 << 63})
	requestCrosses(t, BindID, provider.BindIDRequest{ID: 1})
	requestCrosses(t, FindRoute, provider.FindRouteRequest{Dest: netip.MustParseAddr("ff02::1%eth0")})
	requestCrosses(t, ResolveIDAddr, provider.ResolveIDAddrRequest{ID: 1, Source: netip.MustParseAddrPort("10.0.0.1:65535"), Dest: zoned, Timeout: -time.Second})
	requestCrosses(t, ListenID, provider.ListenIDRequest{ID: 1, Backlog: -1})
	requestCrosses(t, AcceptID, provider.AcceptIDRequest{ID: 1, Response: true, Param: ib.ConnParam{PrivateData: make([]byte, ib.MaxCMPrivateData), QPN: 2, QKey: 3}})
	requestCrosses(t, ConnectID, provider.ConnectIDRequest{ID: 1, Param: ib.ConnParam{
		PrivateData: []byte{1}, ResponderResources: 2, InitiatorDepth: 3, FlowControl: true, RetryCount: 4, RNRRetryCount: 5, SRQ: true,
	}})
	requestCrosses(t, JoinID, provider.JoinIDRequest{ID: 1, Group: netip.MustParseAddr("239.1.2.3"), State: 9, Context: 2})
	long := provider.RejectIDRequest{PrivateData: make([]byte, ib.MaxCMPrivateData+1)}
	if _, err := RejectID.EncodeRequest(1, &long); !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("private data that is too long: %v", err)
	}
	packet, err := FindRoute.EncodeRequest(1, &provider.FindRouteRequest{})
	if err != nil {
		t.Fatal(err)
	}
	packet[headerLen+2] = 1 // the source's port
	if _, err := FindRoute.DecodeRequest(packet[headerLen:]); !errors.Is(err, ErrMalformed) {
		t.Errorf("an address with a port: %v", err)
	}
}
