import { n8nCommunityNodesPlugin } from '@n8n/eslint-plugin-community-nodes'
import { configs } from 'typescript-eslint'

/** The rules of n8n's plugin for community nodes, including the rules for nodes that n8n verifies. */
export default [
  { ignores: ['dist', 'node_modules', '*.mjs'] },
  { files: ['**/*.ts'], languageOptions: { parser: configs.base.languageOptions.parser } },
  n8nCommunityNodesPlugin.configs.recommended,
]
