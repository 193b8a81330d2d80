import crypto, { createHmac, KeyObject } from 'node:crypto'
import { expect, test } from 'vitest'
import { passKeysAsObjects } from './library-patches.ts'

const KEY = Buffer.alloc(32, 7)
const TEXT = 'Good morning'

test('keys given as bytes become key objects; other arguments are unchanged', () => {
  const got: unknown[][] = []
  const take = (...given: unknown[]) => void got.push(given)
  const target = { createHmac: take, createCipheriv: take, createDecipheriv: take }
  passKeysAsObjects(target)
  const object = crypto.createSecretKey(KEY)
  target.createHmac('sha256', KEY)
  target.createHmac('sha256', 'a string')
  target.createCipheriv('aes-256-gcm', object, KEY)
  target.createDecipheriv('aes-256-gcm', new Uint8Array(KEY), KEY, { authTagLength: 16 })
  expect(got).toEqual([
    ['sha256', expect.any(KeyObject)],
    ['sha256', 'a string'],
    ['aes-256-gcm', object, KEY],
    ['aes-256-gcm', expect.any(KeyObject), KEY, { authTagLength: 16 }],
  ])
  expect((got[0]![1] as KeyObject).export()).toEqual(KEY)
})

test('the patch is applied once and changes no result, even for functions imported by name', () => {
  const before = createHmac('sha256', KEY).update(TEXT).digest('hex')
  const original = crypto.createHmac
  passKeysAsObjects()
  const replaced = crypto.createHmac
  expect(replaced).not.toBe(original)
  passKeysAsObjects()
  expect(crypto.createHmac).toBe(replaced)
  expect(createHmac).toBe(replaced)
  expect(createHmac('sha256', KEY).update(TEXT).digest('hex')).toBe(before)
  expect(createHmac('sha256', Buffer.alloc(0)).update(TEXT).digest('hex')).toBe(
    createHmac('sha256', '').update(TEXT).digest('hex'),
  )
  const iv = Buffer.alloc(12)
  const cipher = crypto.createCipheriv('aes-256-gcm', KEY, iv)
  const sealed = Buffer.concat([cipher.update(TEXT), cipher.final()])
  const decipher = crypto.createDecipheriv('aes-256-gcm', KEY, iv).setAuthTag(cipher.getAuthTag())
  expect(Buffer.concat([decipher.update(sealed), decipher.final()]).toString()).toBe(TEXT)
})

test('a key of the wrong length is refused as before', () => {
  passKeysAsObjects()
  expect(() => crypto.createCipheriv('aes-256-gcm', KEY.subarray(1), Buffer.alloc(12))).toThrow(
    expect.objectContaining({ code: 'ERR_CRYPTO_INVALID_KEYLEN' }),
  )
})
