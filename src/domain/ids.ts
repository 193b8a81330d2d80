import { randomBytes, randomUUID } from 'node:crypto'

export type InstanceId = string
export type MessageId = string
export type EventId = string
export type EndpointId = string

/** Crockford's base 32 in lower case: digits sort before letters, and no letter looks like a digit. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_CHARACTERS = 10
const RANDOM_CHARACTERS = 16
const SHORT_CHARACTERS = 12

function randomCharacters(count: number): string {
  let text = ''
  for (const byte of randomBytes(count)) text += ALPHABET[byte & 31]
  return text
}

function timeCharacters(at: number): string {
  let time = ''
  const moment = Math.min(Math.max(0, Math.trunc(at)), LAST_MOMENT)
  for (let rest = moment, left = TIME_CHARACTERS; left > 0; left -= 1, rest = Math.floor(rest / 32)) {
    time = ALPHABET[rest % 32] + time
  }
  return time
}

/** The largest time that fits into `TIME_CHARACTERS`. */
const LAST_MOMENT = 32 ** TIME_CHARACTERS - 1

let latest: { at: number; random: string } | null = null

/**
 * Ten characters of milliseconds and 16 random ones (the layout of a ULID): unique and sorted by time. Within one millisecond
 * the IDs of a process sort in the order of their creation.
 */
function timeOrderedId(now: number): string {
  const random = latest?.at === now ? successor(latest.random) : randomCharacters(RANDOM_CHARACTERS)
  latest = { at: now, random }
  return timeCharacters(now) + random
}

/** The next number in base 32; wraps around after the last. */
function successor(text: string): string {
  const rest = text.slice(0, -1)
  const next = ALPHABET[ALPHABET.indexOf(text.slice(-1)) + 1]
  if (next !== undefined) return rest + next
  return rest === '' ? '0' : `${successor(rest)}0`
}

/** `inst_` and 12 characters (contract §6). */
export function newInstanceId(): InstanceId {
  return `inst_${randomCharacters(SHORT_CHARACTERS)}`
}

/** `endpoint_` and 12 characters. @param prefix `OPERATOR_PREFIX` for an endpoint of the operator */
export function newEndpointId(prefix = 'endpoint_'): EndpointId {
  return `${prefix}${randomCharacters(SHORT_CHARACTERS)}`
}

/** `key_` and 12 characters, of an API key. It is not the key itself. */
export function newKeyId(): string {
  return `key_${randomCharacters(SHORT_CHARACTERS)}`
}

/** `acc_` and 12 characters, of a person's account. */
export function newAccountId(): string {
  return `acc_${randomCharacters(SHORT_CHARACTERS)}`
}

/** `lnk_` and 12 characters, of a linking link. It is not the link's token. */
export function newHandoutId(): string {
  return `lnk_${randomCharacters(SHORT_CHARACTERS)}`
}

export function newMessageId(now: number): MessageId {
  return `msg_${timeOrderedId(now)}`
}

/** A command is a row among the messages. */
export function newCommandId(now: number): MessageId {
  return `cmd_${timeOrderedId(now)}`
}

export function isCommandId(id: string): boolean {
  return id.startsWith('cmd_')
}

export function newEventId(now: number): EventId {
  return `evt_${timeOrderedId(now)}`
}

/** A delivery's ID contains its event's ID, by which the delivery is found. @param seq the number of the delivery */
export function deliveryIdOf(eventId: EventId, seq: string): string {
  return `dlv_${eventId.slice('evt_'.length)}${Number(seq).toString(36)}`
}

/** Null for an ID in another form. */
export function parseDeliveryId(id: string): { eventId: EventId; seq: number } | null {
  const [, event, seq] = /^dlv_([0-9a-z]{26})([0-9a-z]{1,10})$/.exec(id) ?? []
  return event === undefined ? null : { eventId: `evt_${event}`, seq: Number.parseInt(seq!, 36) }
}

export function newAlertId(now: number): string {
  return `alt_${timeOrderedId(now)}`
}

export function newAlertTargetId(): string {
  return `tgt_${randomCharacters(SHORT_CHARACTERS)}`
}

/** The ID of a medium. Callers see it. */
export function newMediaId(now: number): string {
  return `med_${timeOrderedId(now)}`
}

/** The ID of the stored bytes of a file, which is their name in the storage. Callers never see it. */
export function newMediaFileId(now: number): string {
  return `file_${timeOrderedId(now)}`
}

/** Sorts after every ID created before `at` and before every ID created since. */
export function firstMessageId(at: number): MessageId {
  return `msg_${timeCharacters(at)}`
}

/** The same for commands. */
export function firstCommandId(at: number): MessageId {
  return `cmd_${timeCharacters(at)}`
}

/** The same for events. */
export function firstEventId(at: number): EventId {
  return `evt_${timeCharacters(at)}`
}

/**
 * An ID in WhatsApp Web's format: `3EB0` and 18 upper-case hexadecimal digits. They are taken from a random UUID,
 * because Node caches random bytes for UUIDs. A call of `randomBytes` for each message would cost much more.
 */
export function newWhatsappId(): string {
  const uuid = randomUUID()
  return `3EB0${(uuid.slice(0, 8) + uuid.slice(24, 34)).toUpperCase()}`
}
