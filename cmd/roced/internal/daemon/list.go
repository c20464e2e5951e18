// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// Clients returns the clients of a device, or of all devices if it is empty.
func (c *Connection) Clients(device string) (all []proto.ClientInfo, err error) {
	for after := uint64(0); ; {
		page, err := call(c, proto.ListClients, proto.ListClientsRequest{After: after})
		if err != nil {
			return nil, err
		}
		for _, one := range page.Clients {
			if after = one.Number; device == "" || one.Device == device {
				all = append(all, one)
			}
		}
		if !page.More {
			return all, nil
		}
	}
}

// Objects returns the objects of a kind on all devices.
func (c *Connection) Objects(kind proto.ObjectKind) (all []proto.ClientObject, err error) {
	for request := (proto.ListObjectsRequest{Kind: kind}); ; {
		page, err := call(c, proto.ListObjects, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Objects...)
		if request.From = page.Next; !page.More {
			return all, nil
		}
	}
}

// IDs returns the connection ids of all clients.
func (c *Connection) IDs() (all []proto.ClientID, err error) {
	for request := (proto.ListIDsRequest{}); ; {
		page, err := call(c, proto.ListIDs, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.IDs...)
		if request.From = page.Next; !page.More {
			return all, nil
		}
	}
}

// Counters returns the counters of a device.
func (c *Connection) Counters(device string) ([]verbs.Counter, error) {
	return call(c, proto.ReadCounters, proto.ReadCountersRequest{Device: device})
}
