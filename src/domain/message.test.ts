import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canFail, FAILURE_CODES, MESSAGE_STATES, type MessageProgress, messageFailure, movesTo } from './message.ts'

const PROGRESS: readonly MessageProgress[] = ['sent', 'delivered', 'read']

describe('the transitions of a message', () => {
  test('include the skipped states, in order', () => {
    expect(movesTo('queued', 'read')).toEqual(['sent', 'delivered', 'read'])
    expect(movesTo('sent', 'read')).toEqual(['delivered', 'read'])
  })

  test('are empty for a late or repeated receipt', () => {
    expect(movesTo('read', 'delivered')).toEqual([])
    expect(movesTo('read', 'read')).toEqual([])
    expect(movesTo('delivered', 'sent')).toEqual([])
  })

  test('never leave the state "failed", and a sent message fails only if WhatsApp refuses it', () => {
    for (const reached of PROGRESS) expect(movesTo('failed', reached)).toEqual([])
    expect(MESSAGE_STATES.filter(state => canFail(state, 'rejected_by_whatsapp'))).toEqual(['queued', 'sent'])
    expect(FAILURE_CODES.filter(code => canFail('sent', code))).toEqual(['not_a_group_member', 'rejected_by_whatsapp'])
    for (const code of FAILURE_CODES) expect(MESSAGE_STATES.filter(state => canFail(state, code))[0]).toBe('queued')
  })

  test('reach each state once and in order, for any receipts in any order', () => {
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

  test('to "failed" have a message for every code, which includes WhatsApp’s own code', () => {
    for (const code of FAILURE_CODES) expect(messageFailure(code).message).toMatch(/^[A-Z].*\.$/)
    expect(messageFailure('rejected_by_whatsapp', 421).message).toContain('421')
  })
})
