package space

import "reflect"

// roomWeight is the overhead of the heap for a short text, in bytes.
const roomWeight = 8

// Weight returns about how many bytes of memory a manifest takes that Parse
// returned. It costs nothing: Parse has counted.
func (m *Manifest) Weight() int { return m.weight }

// weightOf returns the memory of what a value points to, in bytes.
func weightOf(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			n = v.Len() + roomWeight
		}
	case reflect.Slice:
		if v.Cap() > 0 {
			n = v.Cap()*int(v.Type().Elem().Size()) + roomWeight
		}
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				n += weightOf(v.Index(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			n = int(v.Type().Elem().Size()) + weightOf(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() { // it is exported
				n += weightOf(f)
			}
		}
	}
	return n
}
