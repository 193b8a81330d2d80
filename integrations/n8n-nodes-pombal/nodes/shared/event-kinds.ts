import type { INodeProperties } from 'n8n-workflow'

/** The kinds of events (docs/contract.md, section 4). A test compares them with the service's. */
export const EVENT_KINDS = [
  'command.done',
  'command.failed',
  'group.changed',
  'group.joined',
  'group.left',
  'instance.connected',
  'instance.disconnected',
  'instance.linking',
  'instance.logged_out',
  'instance.restricted',
  'instance.stopped',
  'media.failed',
  'media.ready',
  'message.deleted',
  'message.delivered',
  'message.edited',
  'message.failed',
  'message.read',
  'message.received',
  'message.sent',
  'message.written',
] as const

export const EVENTS_PROPERTY: INodeProperties = {
  displayName: 'Events',
  name: 'events',
  type: 'multiOptions',
  options: EVENT_KINDS.map(kind => ({ name: kind, value: kind })),
  default: ['message.received'],
  required: true,
  description: 'The events that start the workflow',
}
