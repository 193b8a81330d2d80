import { expect, test } from 'vitest'
import { comparedSettings } from './compared-settings.ts'
import { readSettings } from './config.ts'

test('nodes compare whether webhooks may reach private networks, which several settings decide', () => {
  const of = (env: NodeJS.ProcessEnv) => comparedSettings(readSettings({ SANDBOX: 'off', ...env }), 'key')
  const differing = (env: NodeJS.ProcessEnv) =>
    Object.entries(of(env)).filter(([name, value]) => of({})[name] !== value)
  for (const env of [{ NODE_ENV: 'production' }, { HOST: '0.0.0.0' }])
    expect(differing(env)).toEqual([['WEBHOOKS_TO_PRIVATE_NETWORKS', 'refused']])
})
