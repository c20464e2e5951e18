package device

import (
	"context"

	"github.com/roced/roced/verbs/provider"
)

// Do implements provider.Doer: the card answers. While the device has none, the error is verbs.ErrDeviceFatal with the
// reason.
func (d *Device) Do(ctx context.Context, code provider.Code, request, grant any) error {
	card, err := d.theCard()
	if err != nil {
		return err
	}
	return card.Do(ctx, code, request, grant)
}
