package space

import "reflect"

// roomWeight is the overhead of the heap for a short text, in bytes.
const roomWeight = 8

// stringWeight is the size of a text's header.
const stringWeight = 16

// TextWeight returns the memory of a text in bytes, without its header.
func TextWeight[T ~string | ~[]byte](text T) int {
	if len(text) == 0 {
		return 0
	}
	return len(text) + roomWeight
}

// ListWeight returns the memory of a list of texts in bytes.
func ListWeight(list []string) (n int) {
	for _, text := range list {
		n += TextWeight(text)
	}
	return n + cap(list)*stringWeight
}

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
