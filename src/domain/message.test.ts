import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canFail, FAILURE_CODES, MESSAGE_STATES, type MessageProgress, messageFailure, movesTo } from './message.ts'

const PROGRESS: readonly MessageProgress[] = ['sent', 'delivered', 'read']

describe('a message’s moves', () => {
  test('a receipt that skips states fills the gap first', () => {
    expect(movesTo('queued', 'read')).toEqual(['sent', 'delivered', 'read'])
    expect(movesTo('sent', 'read')).toEqual(['delivered', 'read'])
  })

  test('a late or repeated receipt moves nothing', () => {
    expect(movesTo('read', 'delivered')).toEqual([])
    expect(movesTo('read', 'read')).toEqual([])
    expect(movesTo('delivered', 'sent')).toEqual([])
  })

  test('nothing leaves failed, and only what is queued or sent can fail', () => {
    for (const reached of PROGRESS) expect(movesTo('failed', reached)).toEqual([])
    expect(MESSAGE_STATES.filter(canFail)).toEqual(['queued', 'sent'])
  })

  test('whatever receipts come in whatever order, each state is reached once and in order', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...PROGRESS)), receipts => {
        let state: MessageProgress | 'queued' = 'queued'
        const told: MessageProgress[] = []
        for (const receipt of receipts) {
          for (const move of movesTo(state, receipt)) {
            told.push(move)
            state = move
          }
        }
        expect(told).toEqual(PROGRESS.slice(0, told.length))
      }),
    )
  })

  test('every failure has a sentence, and WhatsApp’s own code is told in it', () => {
    for (const code of FAILURE_CODES) expect(messageFailure(code).message).toMatch(/^[A-Z].*\.$/)
    expect(messageFailure('rejected_by_whatsapp', 421).message).toContain('421')
  })
})
