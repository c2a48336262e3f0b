package repository

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// imageSlots bounds how many rows are remembered.
	imageSlots = 2048
	// shortText is the longest text that is remembered, in bytes. Longer ones are
	// written at each update.
	shortText = 128
)

// image is what may change of a row, as it stood at one version. It never goes stale: a
// change makes a new version, but for the columns that are loose.
type image struct {
	shape   *shape
	id      string
	version int64
	values  []any // of the columns that updates write, in their order
}

// long stands in an image for a value that is too long to remember. It equals nothing.
type long struct{}

// images remembers some rows as they were last read or written here, so that an update
// carries what has changed and not the whole row. A row that was forgotten is written
// whole.
type images struct {
	seed  maphash.Seed
	slots [imageSlots]atomic.Pointer[image]
}

func newImages() *images { return &images{seed: maphash.MakeSeed()} }

func (m *images) slot(id string) *atomic.Pointer[image] {
	return &m.slots[maphash.String(m.seed, id)%imageSlots]
}

// of gives the values of a row at a version; nil when they are not known.
func (m *images) of(s *shape, id string, version int64) []any {
	known := m.slot(id).Load()
	if known == nil || known.shape != s || known.id != id || known.version != version {
		return nil
	}
	return known.values
}

// keep remembers the values of a row, which it takes over.
func (m *images) keep(s *shape, id string, version int64, values []any) {
	for i, value := range values {
		switch value := value.(type) {
		case string:
			if len(value) > shortText {
				values[i] = long{}
			}
		case []byte:
			values[i] = long{}
		}
	}
	m.slot(id).Store(&image{s, id, version, values})
}

// read remembers a row that was read. One that cannot be taken apart is not remembered.
func read[R any](m *images, row *R) {
	s := shapeOf[R]()
	values, err := s.valuesOf(row, true)
	if err != nil || s.id == nil || s.version == nil {
		return
	}
	id, version := s.key(row)
	if id != "" {
		m.keep(s, id, version, values)
	}
}
