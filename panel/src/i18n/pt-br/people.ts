import type { Words } from '../en.ts'

/** Os textos sobre contas. */
export const people: Words['people'] = {
  title: 'Pessoas',
  hint: 'Quem pode entrar além de você. A chave de administrador tem sempre os direitos de um dono.',
  open: 'Gerenciar pessoas',
  invite: 'Convidar uma pessoa',
  none: 'Ninguém foi convidado ainda',
  noneText: 'Até você convidar alguém, todos entram com a chave de administrador ou a senha do painel, e podem tudo.',
  name: 'Nome para entrar',
  nameHint: 'Por exemplo, um endereço de e-mail. Nada é enviado a ele.',
  role: 'Papel',
  roles: {
    owner: { name: 'Dono', text: 'Pode tudo, inclusive convidar pessoas e ler tokens e segredos.' },
    operator: {
      name: 'Operador',
      text: 'Opera instâncias: vincula números, envia, reenvia. Não lê tokens nem segredos.',
    },
    viewer: { name: 'Leitor', text: 'Lê mensagens, eventos e estatísticas, e não muda nada.' },
  },
  reaches: 'Tem acesso a',
  allInstances: 'Todas as instâncias',
  someInstances: 'Só estas instâncias',
  onlyInstances: count => (count === 1 ? 'Uma instância' : `${count} instâncias`),
  ids: 'IDs das instâncias',
  idsHint: 'Um por linha. O ID está nas configurações da instância.',
  createLink: 'Criar o link',
  link: 'Endereço do convite',
  linkTitle: name => `Envie este link a ${name}`,
  linkText:
    'Copie o link agora, porque ele não será mostrado de novo. Pode ser usado uma vez, em até 3 dias. Quem o usar define a senha da conta.',
  linkEnds: 'Link válido até',
  withProvider: 'entra pelo provedor',
  notYet: 'ainda não aceitou',
  change: 'Mudar',
  changeLabel: name => `Mudar ${name}`,
  changedMeanwhile:
    'Nada foi salvo: outra pessoa mudou este acesso enquanto isso. O formulário agora mostra também as mudanças dela. Confira e salve.',
  newLink: 'Novo link',
  newLinkLabel: name => `Novo link para ${name}`,
  newLinkText:
    'Substitui um link ainda não usado. Serve também para senha esquecida: a antiga vale até a nova ser definida.',
  remove: 'Remover',
  removeLabel: name => `Remover ${name}`,
  removeText: 'A pessoa sai imediatamente e não pode mais entrar. O que ela fez fica na auditoria.',
  passwordEnds:
    'Esta conta definiu a senha do painel. A senha também deixa de funcionar, e quem entrou com ela sai. Você pode definir uma nova em Configurações.',
  passwordStays: 'A senha do painel continua valendo. Se esta pessoa a conhece, defina uma nova em Configurações.',
  linksEnd:
    'Os links para definir uma senha que esta pessoa criou e ninguém usou deixam de valer, e também os criados sem uma conta, por exemplo com a chave de administração. Crie novos links para quem ainda precisa.',
  removed: 'A conta foi removida.',
  noInstances: 'Nenhuma instância foi atribuída a você ainda. Fale com um dono.',
}

/** A página de um convite. */
export const invitation: Words['invitation'] = {
  title: 'Boas-vindas ao Pombal',
  lead: 'Você foi convidado. O link vale uma vez.',
  password: 'Nova senha',
  passwordHint: least => `Pelo menos ${least} caracteres.`,
  action: 'Definir a senha e entrar',
  incomplete: 'Este link está incompleto. Abra o link inteiro que você recebeu ou peça um novo.',
}

/** Em Configurações, para quem tem uma conta. */
export const ownPassword: Words['ownPassword'] = {
  title: 'Sua senha',
  hint: 'Para entrar com o seu nome. Uma senha nova encerra as suas outras sessões.',
  old: 'Senha antiga',
  change: 'Mudar a senha',
  changed: 'Sua senha foi mudada. As suas outras sessões foram encerradas.',
}

export const audit: Words['audit'] = {
  title: 'Registro de auditoria',
  hint: 'Quem mudou o quê, e cada entrada no painel. Nenhum registro é alterado ou apagado.',
  open: 'Abrir a auditoria',
  when: 'Quando',
  who: 'Quem',
  action: 'O quê',
  instance: 'Em qual instância',
  address: 'De onde',
  none: 'Nenhum registro corresponde',
  older: 'Mostrar registros mais antigos',
  again: 'Ler de novo',
  fixed: {
    admin_key: 'Chave de administrador',
    token: 'Token da instância',
    panel: 'Painel, com a chave de administrador ou a senha',
    nobody: 'Entrada recusada',
    command_line: 'Comando no servidor',
  },
  check: 'Conferir os registros',
  intact: count => `Todos os ${count} registros estão aqui, sem alteração.`,
  broken: 'Os registros não estão íntegros.',
  brokenAt: seq => `O registro ${seq} falta ou não corresponde ao anterior. Resumo mais novo:`,
  noteDigest: 'Para poder provar isso depois, anote em outro lugar o resumo do registro mais novo:',
}
