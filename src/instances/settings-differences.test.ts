import { expect, test } from 'vitest'
import { findDifferences } from './settings-differences.ts'

const OWN = { RETENTION_DAYS: '30', PUBLIC_URL: 'https://pombal.example/', ADMIN_KEY: 'a1' }
const other = (settings: object) => ({ node: 'other', settings: JSON.stringify(settings) })

test('a setting that differs is named with both values, a secret without them', () => {
  expect(findDifferences(OWN, [other({ ...OWN, RETENTION_DAYS: '7', ADMIN_KEY: 'b2' })])).toEqual([
    { node: 'other', differing: { RETENTION_DAYS: ['30', '7'], ADMIN_KEY: [null, null] } },
  ])
})

test('equal settings, and settings that only one version knows, do not differ', () => {
  const { PUBLIC_URL, ...fewer } = OWN
  expect(findDifferences(OWN, [other(OWN), other(fewer), other({ ...OWN, LATER: '1' })])).toEqual([])
})
