package device

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// QueryDevice asks the card. While there is none, here and below, verbs.ErrDeviceFatal says why.
func (d *Device) QueryDevice() (verbs.DeviceAttr, error) {
	card, err := d.theCard()
	if err != nil {
		return verbs.DeviceAttr{}, err
	}
	return card.QueryDevice()
}

// QueryPort asks the card.
func (d *Device) QueryPort(r provider.QueryPortRequest) (verbs.PortAttr, error) {
	card, err := d.theCard()
	if err != nil {
		return verbs.PortAttr{}, err
	}
	return card.QueryPort(r)
}

// QueryGIDTable asks the card.
func (d *Device) QueryGIDTable(r provider.QueryGIDTableRequest) (provider.QueryGIDTableGrant, error) {
	card, err := d.theCard()
	if err != nil {
		return provider.QueryGIDTableGrant{}, err
	}
	return card.QueryGIDTable(r)
}
