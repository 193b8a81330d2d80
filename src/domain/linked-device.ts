/** The browser and system that an instance announces when a number is linked. The phone lists it under this name. */
export const LINKED_DEVICES = [
  'chrome-macos',
  'chrome-windows',
  'chrome-ubuntu',
  'edge-windows',
  'firefox-macos',
  'firefox-windows',
  'firefox-ubuntu',
] as const
export type LinkedDevice = (typeof LINKED_DEVICES)[number]

/** The device that WhatsApp has accepted for the longest time. */
export const DEFAULT_LINKED_DEVICE: LinkedDevice = 'chrome-macos'
