import { describe, expect, test } from 'vitest'
import { acceptsMessages, currentState, RECONNECTING_MS } from './connection.ts'

const NOW = 1_000_000_000

describe('the state of a connection', () => {
  test('is the state that its owner stored, while the lease is valid', () => {
    expect(currentState({ state: 'connected', lastConnectedAt: 0 }, true, NOW)).toBe('connected')
    expect(currentState({ state: 'linking', lastConnectedAt: null }, true, NOW)).toBe('linking')
  })

  test('is reconnecting for 5 minutes from the last connection, then disconnected', () => {
    const away = (ms: number) => currentState({ state: 'reconnecting', lastConnectedAt: NOW - ms }, true, NOW)
    expect(away(RECONNECTING_MS - 1)).toBe('reconnecting')
    expect(away(RECONNECTING_MS)).toBe('disconnected')
  })

  test('is not connected once the owner’s lease has lapsed', () => {
    const orphan = (ms: number) => currentState({ state: 'connected', lastConnectedAt: NOW - ms }, false, NOW)
    expect(orphan(20_000)).toBe('reconnecting')
    expect(orphan(RECONNECTING_MS)).toBe('disconnected')
  })

  test('accepts messages while connected or reconnecting', () => {
    expect(
      [
        'connected',
        'reconnecting',
        'disconnected',
        'stopped',
        'logged_out',
        'unlinked',
        'linking',
        'connecting',
      ].filter(state => acceptsMessages(state as never)),
    ).toEqual(['connected', 'reconnecting'])
  })
})
