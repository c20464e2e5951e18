package daemon

import (
	"errors"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
)

// Device is a device as a program sees it that opens it now. Limits are those of the user.
type Device struct {
	Name string // in the daemon's configuration
	Attr verbs.DeviceAttr
	Port verbs.PortAttr
	GIDs []verbs.GIDEntry
	Err  error // why it cannot be opened; nil if it can
}

// Look opens a device for a moment.
func (c *Connection) Look(name string) Device {
	d := Device{Name: name}
	session, err := client.Dial(c.path, name)
	if err != nil {
		d.Err = err
		return d
	}
	d.Attr, d.Err = session.QueryDevice()
	if d.Err == nil {
		d.Port, d.Err = session.QueryPort(verbs.QueryPortRequest{Port: 1})
	}
	if d.Err == nil {
		var table verbs.QueryGIDTableGrant
		table, d.Err = session.QueryGIDTable(verbs.QueryGIDTableRequest{Port: 1})
		d.GIDs = table.Entries
	}
	d.Err = errors.Join(d.Err, session.Close())
	return d
}
