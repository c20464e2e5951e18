// SPDX-License-Identifier: Apache-2.0

// Package service manages sockets of containers in roced's service, as "roced socket" does.
package service
