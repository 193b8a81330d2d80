import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { correctedRecipient, isChat, parseRecipient } from '../domain/recipients/recipient.ts'
import { Refusal } from '../domain/refusal.ts'
import type { ApiOptions } from './context.ts'
import { invalid } from './http/error-handler.ts'
import { MAX_URL_LENGTH } from './resources/events/webhook.ts'
import { MAX_TEXT_UNITS } from './resources/message.ts'
import { MOMENT_MESSAGE } from './resources/schema-kit.ts'

const MAX_NAME_CHARACTERS = 100
const CONTROL_CHARACTER = /\p{Cc}/u
const KEY = /^[\x21-\x7e]{1,255}$/
/** The format of the store's IDs. Other strings are not looked up. */
const ID = /^[a-z]{1,8}_[0-9a-z]{1,40}$/
/** `URL` replaces a missing host by the next path segment: `https:///hook` becomes `https://hook/`. */
const HTTP_WITH_HOST = /^https?:\/\/[^/\\]/i
/** A link that begins with a host name, such as `example.com/a`. */
const WITHOUT_SCHEME = /^[^\s/?#:@]+\.[^\s.]/
/** A date and time with its zone (RFC 3339). */
const MOMENT = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)$/
/** One token of visible ASCII after the case-insensitive scheme (RFC 9110 §11.1). */
const BEARER = /^bearer +([\x21-\x7e]+)$/i

/** The token of an `Authorization` header; null if it is missing or malformed. */
export function parseBearer(header: string | undefined): string | null {
  return (header !== undefined && BEARER.exec(header)?.[1]) || null
}

/** The SHA-256 digest of a token, in hexadecimal. Only the digest is stored (contract §6). */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'hex')
}

/** Checks the rules for a text that its schema cannot express (contract §1). @throws Refusal */
export function checkText(text: string, field = 'text'): void {
  if (text.length > MAX_TEXT_UNITS) throw invalid(field, 'must not be longer than 65,536 UTF-16 units')
  if (!text.isWellFormed()) throw invalid(field, 'must not contain a lone surrogate')
  if (text.includes('\u0000')) throw invalid(field, 'must not contain U+0000')
}

/**
 * @param field the name of `to` in the call
 * @throws Refusal unless `to` is a number, a group or a LID. Its message corrects a number that is almost right.
 */
export function checkRecipient(to: string, field = 'to'): void {
  if (parseRecipient(to)) return
  const corrected = correctedRecipient(to)
  const message = corrected === null ? RECIPIENT_FORMS : `must be written as ${corrected}`
  const sentence = corrected === null && field === 'to' ? undefined : `"${field}" ${message}.`
  throw new Refusal('invalid_phone_number', sentence, { details: [{ field, message }] })
}

const RECIPIENT_FORMS =
  'must be 7 to 15 digits with the country code and no plus sign, a group such as 120363041234567890@g.us, or the LID ' +
  'address of an event, such as 990000007654321@lid'

/** @throws Refusal unless `chat` may be the chat of an event */
export function checkChat(field: string, chat: string): void {
  if (!isChat(chat)) throw invalid(field, RECIPIENT_FORMS)
}

/** A phone number in a field other than `to`. @throws Refusal */
export function checkNumber(field: string, number: string): void {
  if (parseRecipient(number)?.kind === 'number') return
  const corrected = correctedRecipient(number)
  const isNumber = corrected !== null && parseRecipient(corrected)?.kind === 'number'
  throw invalid(field, isNumber ? `must be written as ${corrected}` : 'must be a number of 7 to 15 digits')
}

/** @throws Refusal */
export function checkGroup(field: string, group: string): void {
  if (parseRecipient(group)?.kind !== 'group') throw invalid(field, 'must be a group such as 120363041234567890@g.us')
}

/** The value of a filter with a second, older name. */
export function filterNamed<T>(
  names: readonly [string, string],
  [value, older]: readonly [T | undefined, T | undefined],
): T | undefined {
  if (value !== undefined && older !== undefined && value !== older) throw invalid(names[0], `must equal "${names[1]}"`)
  return value ?? older
}

export function checkFilterText(field: string, text: string): void {
  if (CONTROL_CHARACTER.test(text)) throw invalid(field, 'must not contain control characters')
}

/** Checks a text for people. @throws Refusal */
export function checkNote(field: string, text: string): void {
  if (!text.isWellFormed() || CONTROL_CHARACTER.test(text)) throw invalid(field, 'must not contain control characters')
}

/** @returns the trimmed name @throws Refusal */
export function parseName(field: string, name: string): string {
  const trimmed = name.trim()
  const length = [...trimmed].length
  if (length === 0 || length > MAX_NAME_CHARACTERS) throw invalid(field, 'must have 1 to 100 characters')
  if (!trimmed.isWellFormed() || CONTROL_CHARACTER.test(trimmed))
    throw invalid(field, 'must not contain control characters')
  return trimmed
}

/**
 * The key of a call, under either name of its header or in a field of its body.
 * @throws Refusal if two keys differ, or a header is repeated: Node joins its values with a comma and a space
 */
export function findIdempotencyKey(headers: IncomingHttpHeaders, field?: string): string | undefined {
  const given = {
    'X-Idempotency-Key': headers['x-idempotency-key'],
    'Idempotency-Key': headers['idempotency-key'],
    idempotencyKey: field,
  }
  const keys = new Set<string>()
  for (const [name, key] of Object.entries(given)) {
    if (key === undefined) continue
    if (typeof key !== 'string' || !KEY.test(key)) throw invalid(name, 'must be 1 to 255 visible ASCII characters')
    keys.add(key)
  }
  if (keys.size > 1) throw invalid('X-Idempotency-Key', 'must not differ from a second idempotency key')
  const [key] = keys
  return key
}

export function isId(text: string): boolean {
  return ID.test(text)
}

/** @returns milliseconds since 1970 @throws Refusal */
export function parseMoment(field: string, text: string): number {
  const at = MOMENT.test(text) && isDay(text.slice(0, 10)) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at)) throw invalid(field, MOMENT_MESSAGE)
  return at
}

/** Rejects dates such as 30 February, which `Date.parse` reads as 2 March. */
function isDay(text: string): boolean {
  const at = Date.parse(text)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text)
}

/** @throws Refusal unless events can be posted to `url` (contract §1, §5) */
export function checkWebhookUrl(url: string, check: ApiOptions['checkWebhookUrl']): void {
  checkUrl('url', url, check, 'webhooks')
}

/**
 * The URL is stored as written. A host name is resolved only when it is used.
 * @param users who uses the URL, for the error message @throws Refusal
 */
export function checkUrl(field: string, url: string, check: ApiOptions['checkWebhookUrl'], users: string): void {
  if (url.length > MAX_URL_LENGTH) throw invalid(field, 'must not be longer than 2,048 characters')
  const parsed = parseHttpUrl(field, url)
  if (check(parsed) === 'blocked') throw invalid(field, `is an address that ${users} may not reach`)
}

function parseHttpUrl(field: string, url: string): URL {
  const parsed = HTTP_WITH_HOST.test(url) ? URL.parse(url) : null
  if (!parsed) throw invalid(field, 'must be an absolute http or https URL')
  if (/[\s\p{Cc}]/u.test(url) || !url.isWellFormed())
    throw invalid(field, 'must not contain spaces or control characters')
  if (parsed.username || parsed.password) throw invalid(field, 'must not contain credentials')
  return parsed
}

/** Checks a link that WhatsApp shows with a text. It may have no scheme. Nothing is fetched from it. @throws Refusal */
export function checkLink(field: string, link: string): void {
  parseHttpUrl(field, WITHOUT_SCHEME.test(link) ? `https://${link}` : link)
}
