// Package media reads the type of images and documents from their bytes. A label
// (a media type that a tool, a person or a file's name gives) is often wrong, and
// providers refuse a request whose label and bytes differ.
//
// # Path
//
// Type is what spaces, clients, requests to models and the providers' own limits
// use. Of an image, Sides and IsAnimated read its header. Fault reads all of a file's
// structure, and decodes small images.
//
// # Testing
//
// testdata has the smallest files of each format; its README says how they were made.
package media
