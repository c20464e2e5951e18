package device

import "github.com/roced/roced/verbs"

// QueryDevice asks the card. While there is none, here and below, verbs.ErrDeviceFatal says why.
func (d *Device) QueryDevice() (verbs.DeviceAttr, error) {
	card, err := d.theCard()
	if err != nil {
		return verbs.DeviceAttr{}, err
	}
	return card.QueryDevice()
}

// QueryPort asks the card.
func (d *Device) QueryPort(r verbs.QueryPortRequest) (verbs.PortAttr, error) {
	card, err := d.theCard()
	if err != nil {
		return verbs.PortAttr{}, err
	}
	return card.QueryPort(r)
}

// QueryGIDTable asks the card.
func (d *Device) QueryGIDTable(r verbs.QueryGIDTableRequest) (verbs.QueryGIDTableGrant, error) {
	card, err := d.theCard()
	if err != nil {
		return verbs.QueryGIDTableGrant{}, err
	}
	return card.QueryGIDTable(r)
}
