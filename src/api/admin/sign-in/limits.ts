import { createHmac } from 'node:crypto'
import { accountNameKey } from '../../../domain/access.ts'
import { networkOf, siteOf } from './caller-address.ts'
import type { Limit } from './wrong-keys.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const PER_NETWORK = 10
const PER_SITE = 50
const PER_NAME = 100
const PER_DEVICE = 10
const PER_ACCOUNT = 10
/** Hexadecimal digits of a name's digest. Names share 65,536 counts, so guessing with many names cannot fill the table. */
const DIGITS_OF_NAME = 4

/** @param address the caller's */
export function limitsOfCaller(address: string): Limit[] {
  const [network, site] = [networkOf(address), siteOf(address)]
  const limit = { key: network, atMost: PER_NETWORK, windowMs: MINUTE_MS }
  return network === site ? [limit] : [limit, { key: site, atMost: PER_SITE, windowMs: MINUTE_MS }]
}

/**
 * Answers that the provider does not confirm. They are counted separately: they do not block passwords, and wrong passwords do not
 * block them.
 */
export function limitsOfAnswers(address: string): Limit[] {
  return limitsOfCaller(address).map(limit => ({ ...limit, key: `provider ${limit.key}` }))
}

/** Wrong tokens of linking links. They are counted separately, so a link that has ended blocks no sign-in. */
export function limitsOfLinks(address: string): Limit[] {
  return limitsOfCaller(address).map(limit => ({ ...limit, key: `link ${limit.key}` }))
}

/** Shared by all callers. Names that no account has are limited too, so the answer does not reveal which names exist. */
export function limitOfName(name: string | undefined, adminKey: string): Limit {
  const key = name === undefined ? 'the password of the panel' : `name ${digestOf(name, adminKey)}`
  return { key, atMost: PER_NAME, windowMs: HOUR_MS }
}

function digestOf(name: string, adminKey: string): string {
  const digest = createHmac('sha256', adminKey)
    .update(JSON.stringify(['name', accountNameKey(name)]))
    .digest('hex')
  return digest.slice(0, DIGITS_OF_NAME)
}

/** @param id of a browser that signed in with this name before */
export function limitOfDevice(id: string): Limit {
  return { key: `device ${id}`, atMost: PER_DEVICE, windowMs: MINUTE_MS }
}

/** The limit for a person who is signed in to this account and changes its password. */
export function limitOfAccount(id: string): Limit {
  return { key: `account ${id}`, atMost: PER_ACCOUNT, windowMs: MINUTE_MS }
}
