import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isGroup, isNumber, lidJid, lidOf, numberOfKey, parseAddress, pnJid } from './addresses.ts'
import { hasMeaning } from './contacts/behaviour.ts'

const numbers = fc.stringMatching(/^[1-9]\d{4,14}$/)

it('the number can be read back from its LID and from its JIDs, for every device', () => {
  fc.assert(
    fc.property(numbers, fc.integer({ min: 0, max: 99 }), (number, device) => {
      expect(parseAddress(pnJid(number, device))).toEqual({ number, device, lid: false })
      expect(parseAddress(lidJid(number, device))).toEqual({ number, device, lid: true })
      expect(lidOf(number)).toMatch(/^\d{15}$/)
      expect(lidOf(number)).not.toBe(number)
    }),
  )
})

it('text that is not a user JID parses to null without an error', () => {
  fc.assert(fc.property(fc.string(), text => parseAddress(text) === null || /@/.test(text)))
  for (const jid of [undefined, '', '@s.whatsapp.net', '123@g.us', '0123456@s.whatsapp.net', '1@newsletter']) {
    expect(parseAddress(jid)).toBe(null)
  }
})

it('group JIDs are not user JIDs', () => {
  expect(isGroup('120363000000000001@g.us')).toBe(true)
  expect(isGroup('5511999990001-1500000000@g.us')).toBe(true)
  expect(isGroup(`${'1'.repeat(59)}@g.us`)).toBe(true)
  expect(isGroup(`${'1'.repeat(60)}@g.us`)).toBe(false)
  for (const jid of [undefined, '5511999990001@s.whatsapp.net', 'x@g.us', '@g.us']) expect(isGroup(jid)).toBe(false)
})

it('every key has a number that is stable, unlikely to collide, and never one with a special behaviour', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), key => {
      const number = numberOfKey(key)
      expect(isNumber(number)).toBe(true)
      expect(numberOfKey(key)).toBe(number)
      if (!isNumber(key)) expect(hasMeaning(number)).toBe(false)
    }),
  )
  const many = Array.from({ length: 10_000 }, (_, n) => numberOfKey(`inst_${n}`))
  expect(new Set(many).size).toBe(many.length)
})
