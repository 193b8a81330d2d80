import { isAssistant, isGroup, isNumber } from '../addresses.ts'
import { PASSKEY_PLAYS } from '../passkey/passkey-play.ts'
import { SimulatorError } from '../types.ts'
import { LINKING_FAILURES } from './linking-failures.ts'
import { MEDIA_RETRY_ANSWERS, type Order } from './order.ts'

type Check = (value: unknown) => boolean
type Fields = Readonly<Record<string, Check>>

const LID = /^[1-9]\d{4,14}$/

const text: Check = value => typeof value === 'string' && value !== ''
const flag: Check = value => typeof value === 'boolean'
const atLeast =
  (min: number): Check =>
  value =>
    Number.isFinite(value) && (value as number) >= min
const count: Check = value => Number.isSafeInteger(value) && (value as number) >= 0
const oneOf =
  (...allowed: unknown[]): Check =>
  value =>
    allowed.includes(value)
const strings: Check = value => isObject(value) && Object.values(value).every(one => typeof one === 'string')

const stanza: Check = value =>
  hasShape(
    value,
    { tag: text },
    {
      attrs: strings,
      content: one => typeof one === 'string' || (Array.isArray(one) && one.every(stanza)),
      base64: text,
    },
  )

const when: Fields = {
  stanza: text,
  direction: oneOf('in', 'out'),
  account: isNumber,
  contact: isNumber,
  attrs: strings,
  nth: atLeast(1),
  times: count,
  probability: value => atLeast(0)(value) && (value as number) <= 1,
}
const action: Check = value =>
  oneOf('hold', 'drop', 'double', 'cut', 'cut_after', 'garble')(value) ||
  hasShape(value, { delayMs: atLeast(0) }, { jitterMs: atLeast(0) }) ||
  hasShape(value, { error: text }) ||
  hasShape(value, { bytesPerSecond: atLeast(1) }) ||
  hasShape(value, { without: one => Array.isArray(one) && one.every(text) }) ||
  hasShape(value, { set: strings }) ||
  hasShape(value, { noDevicesOf: isNumber }) ||
  hasShape(value, { address: oneOf('lid', 'pn') }, { alternate: flag }) ||
  hasShape(value, { lid: one => typeof one === 'string' && LID.test(one), number: isNumber })
const rule: Check = value =>
  hasShape(value, { when: one => hasShape(one, {}, when), do: action }, { forMs: atLeast(0) })
const receipt: Fields = { account: isNumber, contact: isNumber, id: text }

/** The required and the optional fields of each kind. */
const FIELDS: Readonly<Record<Order['kind'], readonly [Fields, Fields?]>> = {
  rule: [{ rule }],
  remove_rule: [{ id: count }],
  release: [{}, { count }],
  clear: [{}],
  latency: [{ ms: count }],
  seed: [{ seed: count }],
  stanza: [{ account: isNumber, stanza }],
  cut: [{ account: isNumber }],
  stream_error: [{ account: isNumber }, { code: text, conflict: oneOf('replaced', 'device_removed') }],
  refuse_logins: [{ reason: text, count }, { account: isNumber }],
  qr_codes: [{ count }],
  fail_linking: [{ how: oneOf(...LINKING_FAILURES) }, { count }],
  require_passkey: [
    { account: isNumber },
    { required: flag, credential: value => hasShape(value, { id: text, publicKey: text }) },
  ],
  play_passkey: [{ how: oneOf(...PASSKEY_PLAYS) }, { count }],
  passkey_code: [{ account: isNumber }],
  no_restart: [{}],
  batches: [{}],
  phone_copies: [{}],
  media_retries: [{ answer: oneOf(...MEDIA_RETRY_ANSWERS) }],
  expire_media_auth: [{}],
  expire_media: [{ account: isNumber }],
  look_up: [{ number: isNumber, finds: value => value === null || isNumber(value) }],
  restrict: [
    { account: isNumber, seconds: value => value === null || count(value) },
    { notify: flag, saysUntil: flag },
  ],
  receipt: [receipt, { type: oneOf('read', 'played', 'inactive'), address: oneOf('lid', 'pn'), group: isGroup }],
  ask_again: [receipt, { group: isGroup }],
  change_identity: [{ account: isNumber, contact: isNumber }],
  add_device: [{ account: isNumber, contact: isNumber }, { notify: flag }],
  write: [
    { from: isNumber, to: isNumber, text, count },
    { perSecond: atLeast(0.001), group: isGroup },
  ],
  write_on_phone: [{ account: isNumber, to: value => isNumber(value) || isGroup(value) || isAssistant(value), text }],
}

/** @throws SimulatorError `invalid_argument` */
export function parseOrder(value: unknown): Order {
  const kind = isObject(value) ? value['kind'] : undefined
  if (typeof kind !== 'string' || !Object.hasOwn(FIELDS, kind)) {
    throw new SimulatorError('invalid_argument', `\`kind\` must be one of ${Object.keys(FIELDS).join(', ')}`)
  }
  const { kind: _, ...given } = value as Record<string, unknown>
  const [required, optional] = FIELDS[kind as Order['kind']]
  if (!hasShape(given, required, optional)) {
    const names = [...Object.keys(required), ...Object.keys(optional ?? {}).map(name => `${name}?`)]
    throw new SimulatorError(
      'invalid_argument',
      `\`${kind}\` takes ${names.join(', ') || 'nothing'}, each as documented`,
    )
  }
  return value as Order
}

function hasShape(value: unknown, required: Fields, optional: Fields = {}): boolean {
  if (!isObject(value)) return false
  const checks = { ...required, ...optional }
  return (
    Object.keys(required).every(name => value[name] !== undefined) &&
    Object.entries(value).every(([name, one]) => one === undefined || checks[name]?.(one) === true)
  )
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
