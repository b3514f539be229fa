from tearless.contract import Error as Error
from tearless.trainer import Run as Run, setting as setting, settings as settings
