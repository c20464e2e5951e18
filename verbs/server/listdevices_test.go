// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/roced/roced/verbs/proto"
)

// TestListDevices: the description of a device before it is open is still correct when it is open.
func TestListDevices(t *testing.T) {
	r := newRig(t, anyone)
	c := r.a.raw(t)
	ask(c, proto.Hello, &proto.HelloRequest{Magic: proto.Magic, Oldest: 1, Newest: proto.Version})
	list, _ := ask(c, proto.ListDevices, &proto.None{})
	if len(list) != 1 || list[0].NodeGUID == 0 || list[0].NodeType != proto.NodeCA {
		t.Fatalf("%+v", list)
	}
	_, ends := ask(c, proto.OpenDevice, &proto.OpenRequest{Device: list[0].Name})
	defer proto.CloseAll(ends)
	attr, _ := ask(c, proto.QueryDevice, &proto.None{})
	if attr.Name != list[0].Name || attr.NodeGUID != list[0].NodeGUID || attr.SysImageGUID != list[0].SysImageGUID {
		t.Errorf("%+v, listed %+v", attr, list)
	}
	check(t, r.cards[0].Close())
	other := r.a.raw(t)
	ask(other, proto.Hello, &proto.HelloRequest{Magic: proto.Magic, Oldest: 1, Newest: proto.Version})
	if list, _ := ask(other, proto.ListDevices, &proto.None{}); len(list) != 0 {
		t.Errorf("without a card: %+v", list)
	}
}
