import type { SignalAuthState } from 'baileys'
import { expect, test } from 'vitest'
import { guardMapping, type LIDMappingStore } from './lid-mapping.ts'

test('a malformed address, which a contact may have chosen, is neither read nor queried', async () => {
  const read: string[] = []
  const queried: string[] = []
  const keys = {
    get: async (_: string, ids: string[]) => {
      read.push(...ids)
      return {}
    },
  }
  const base = {
    storeLIDPNMappings: async () => undefined,
    getPNsForLIDs: async () => null,
    getLIDsForPNs: async (pns: string[]) => {
      queried.push(...pns)
      return null
    },
  }
  const mapping = guardMapping(base as unknown as LIDMappingStore, { creds: {}, keys } as unknown as SignalAuthState)
  const users = ['x', '', '5'.repeat(21), '1 2', '5511987654321:2']
  await mapping.getPNsForLIDs(users.map(user => `${user}@lid`))
  await mapping.getLIDsForPNs(users.map(user => `${user}@s.whatsapp.net`))
  expect(read).toEqual(['5511987654321_reverse'])
  expect(queried).toEqual(['5511987654321:2@s.whatsapp.net'])
})
