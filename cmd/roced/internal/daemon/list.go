package daemon

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// Clients lists the clients of a device, or of all if that is empty.
func (c *Connection) Clients(device string) (all []proto.ClientInfo, err error) {
	for after := uint64(0); ; {
		page, err := ask(c, proto.ListClients, proto.ListClientsRequest{After: after})
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

// Objects lists the objects of a kind, of all devices.
func (c *Connection) Objects(kind proto.ObjectKind) (all []proto.ClientObject, err error) {
	for request := (proto.ListObjectsRequest{Kind: kind}); ; {
		page, err := ask(c, proto.ListObjects, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Objects...)
		if request.From = page.Next; !page.More {
			return all, nil
		}
	}
}

// IDs are the connection ids of all clients.
func (c *Connection) IDs() (all []proto.ClientID, err error) {
	for request := (proto.ListIDsRequest{}); ; {
		page, err := ask(c, proto.ListIDs, request)
		if err != nil {
			return nil, err
		}
		all = append(all, page.IDs...)
		if request.From = page.Next; !page.More {
			return all, nil
		}
	}
}

// Counters are a device's.
func (c *Connection) Counters(device string) ([]verbs.Counter, error) {
	return ask(c, proto.ReadCounters, proto.ReadCountersRequest{Device: device})
}
