package durable

// PublishWithoutLinks is what CreateOnce does on a file system that has no hard links.
var PublishWithoutLinks = publishWithoutLinks
