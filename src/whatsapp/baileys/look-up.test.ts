import type { BinaryNode } from 'baileys'
import { describe, expect, test, vi } from 'vitest'
import { lookUp } from './look-up.ts'

const NUMBER = '5511987654321'
const PN = `${NUMBER}@s.whatsapp.net`

const node = (tag: string, attrs: Record<string, string> = {}, ...content: BinaryNode[]): BinaryNode => ({
  tag,
  attrs,
  content,
})
const users = (...all: BinaryNode[]) => node('iq', { type: 'result' }, node('usync', {}, node('list', {}, ...all)))
const contact = (type: string, jid?: string) => users(node('user', jid ? { jid } : {}, node('contact', { type })))
const devices = (...ids: string[]) =>
  users(
    node('user', { jid: PN }, node('devices', {}, node('device-list', {}, ...ids.map(id => node('device', { id }))))),
  )
const failing = (part: string) => users(node('user', { jid: PN }, node(part, {}, node('error', { code: '500' }))))
const refused = (code: number) => Object.assign(new Error('refused'), { data: code })

const NOTHING = undefined
const ACKNOWLEDGED = node('iq', { type: 'result' })

describe('WhatsApp’s answer about a number', () => {
  test.each<[string, BinaryNode | Error | undefined, BinaryNode | Error | undefined, unknown]>([
    [
      'in, at another address',
      contact('in', '551187654321@s.whatsapp.net'),
      NOTHING,
      { kind: 'found', address: '551187654321@s.whatsapp.net' },
    ],
    ['in, at a LID with a device', contact('in', '99:3@lid'), NOTHING, { kind: 'found', address: '99@lid' }],
    ['out', contact('out'), NOTHING, { kind: 'absent' }],
    ['invalid', contact('invalid', PN), NOTHING, { kind: 'absent' }],
    ['in, without an address; then a device', contact('in'), devices('0'), { kind: 'found', address: PN }],
    ['nothing; then a device', users(node('user')), devices('0', '7'), { kind: 'found', address: PN }],
    ['nothing; then no device', users(), devices(), { kind: 'absent' }],
    ['nothing, twice', users(), users(), { kind: 'absent' }],
    ['not understood; then a device', refused(501), devices('0'), { kind: 'found', address: PN }],
    ['not understood; then no device', refused(501), devices(), { kind: 'silent' }],
    ['unanswered, and the number has two spellings', NOTHING, devices('0'), { kind: 'silent' }],
    ['unanswered, twice', NOTHING, NOTHING, { kind: 'silent' }],
    ['an empty result, twice', ACKNOWLEDGED, ACKNOWLEDGED, { kind: 'silent' }],
    ['an error for the number; then no device', failing('contact'), devices(), { kind: 'silent' }],
    [
      'nothing, and nothing about devices',
      users(node('user', { jid: PN })),
      users(node('user', { jid: PN })),
      { kind: 'silent' },
    ],
    ['nothing; then an error', users(), failing('devices'), { kind: 'silent' }],
  ])('%s', async (_, first, second, expected) => {
    const answer = async (one: BinaryNode | Error | undefined) => {
      if (one instanceof Error) throw one
      return one
    }
    const query = vi
      .fn()
      .mockImplementationOnce(() => answer(first))
      .mockImplementationOnce(() => answer(second))
    expect(await lookUp(NUMBER, query)).toEqual(expected)
  })

  test('that never comes is replaced by the answer about devices, if the number has one spelling', async () => {
    const query = vi.fn().mockResolvedValueOnce(NOTHING).mockResolvedValueOnce(devices('0'))
    const number = '351912345678'
    expect(await lookUp(number, query)).toEqual({ kind: 'found', address: `${number}@s.whatsapp.net` })
  })

  test('is not requested again after WhatsApp has limited the rate', async () => {
    const query = vi.fn().mockRejectedValue(refused(429))
    await expect(lookUp(NUMBER, query)).rejects.toThrow('refused')
    expect(query).toHaveBeenCalledTimes(1)
  })
})
